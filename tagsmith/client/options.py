"""Where the server is, and the key to use."""

import os
from typing import Any

import httpx

#: Where `tagsmith up` listens by default.
DEFAULT_URL = "http://127.0.0.1:8765"
#: Uploads and the first request to a model that is not loaded take a while. Nothing takes longer than this.
TIMEOUT_S = 60.0


def http_arguments(base_url: str | None, key: str | None, timeout_s: float) -> dict[str, Any]:
    """The arguments of httpx's clients. The environment has defaults: `TAGSMITH_URL` and `TAGSMITH_KEY`."""
    url = _checked_url(base_url or os.environ.get("TAGSMITH_URL") or DEFAULT_URL)
    token = _checked_key(key or os.environ.get("TAGSMITH_KEY") or "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {"base_url": url, "headers": headers, "timeout": timeout_s}


def _checked_url(text: str) -> str:
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        raise ValueError(f"The address {text} of the server is not valid: {error}.") from None
    if url.scheme not in ("http", "https") or not url.host:
        host = text.strip().rpartition("://")[2]
        raise ValueError(
            f"The address {text} of the server does not begin with http:// or https://. "
            f"Write, for example, http://{host or '127.0.0.1:8765'}."
        )
    return str(url)


def _checked_key(text: str) -> str:
    """Return the key without blanks around it. No message shows a key."""
    key = text.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError("The key has characters that no key has, such as blanks. Copy it again.")
    return key
