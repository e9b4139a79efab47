"""Where the server is, and the key to use."""

import os
from typing import Any

#: Where `tagsmith up` listens by default.
DEFAULT_URL = "http://127.0.0.1:8765"
#: Uploads and the first request to a model that is not loaded take a while. Nothing takes longer than this.
TIMEOUT_S = 60.0


def http_arguments(base_url: str | None, key: str | None, timeout_s: float) -> dict[str, Any]:
    """The arguments of httpx's clients. The environment has defaults: `TAGSMITH_URL` and `TAGSMITH_KEY`."""
    url = base_url or os.environ.get("TAGSMITH_URL") or DEFAULT_URL
    token = key or os.environ.get("TAGSMITH_KEY")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return {"base_url": url, "headers": headers, "timeout": timeout_s}
