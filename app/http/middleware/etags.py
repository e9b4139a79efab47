"""Entity tags: if the route policy sets `etag`, a JSON response without a tag gets one computed from its bytes."""

import hashlib

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.http import etags
from tagsmith.app.http.policy import policy_of
from tagsmith.app.http.problems import NotModified

DIGEST_BYTES = 16


class ETags:
    """Responds with 304 if the caller already has the same bytes. Streamed responses are not changed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not policy_of(scope).etag:
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def tagged(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _wants_tag(message):
                start = message
                return
            if start is not None:
                first, start = start, None
                if not message.get("more_body", False):
                    digest = hashlib.blake2b(message.get("body", b""), digest_size=DIGEST_BYTES).hexdigest()
                    etag = etags.etag(digest)
                    if _has(scope, etag):
                        await Response(status_code=304, headers={"ETag": f"W/{etag}"})(scope, receive, send)
                        return
                    first["headers"] = [*first["headers"], (b"etag", b"W/" + etag.encode())]
                await send(first)
            await send(message)

        await self.app(scope, receive, tagged)


def _wants_tag(start: Message) -> bool:
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    is_json = headers.get(b"content-type", b"").startswith(b"application/json")
    return start["status"] == 200 and is_json and b"etag" not in headers


def _has(scope: Scope, etag: str) -> bool:
    header = next((value for name, value in scope["headers"] if name == b"if-none-match"), None)
    try:
        etags.refuse_unchanged(None if header is None else header.decode("latin-1"), etag)
    except NotModified:
        return True
    return False
