"""Limit of request bodies: at most the limit of the route is read, regardless of Content-Length."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.http import problems
from tagsmith.app.http.policy import BodyLimit, RoutePolicy, policy_of
from tagsmith.core.base.errors import TooLarge
from tagsmith.core.service.settings import Settings


class BodyLimiter:
    """Counts the bytes of each body as they arrive and stops at the limit."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self.app = app
        self._json_bytes = settings.max_json_bytes
        self._upload_bytes = settings.max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced, content_type = 0, b""
        for name, value in scope["headers"]:
            if name == b"content-length":
                # The server refuses a Content-Length that is not a number.
                announced = int(value) if value.isdigit() else 0
            elif name == b"content-type":
                content_type = value
        limit = self._limit_bytes(policy_of(scope), content_type)
        if announced > limit:
            await problems.from_error(scope, _too_large(limit))(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise _too_large(limit)
            return message

        await self.app(scope, counted, send)

    def _limit_bytes(self, policy: RoutePolicy, content_type: bytes) -> int:
        if policy.body is BodyLimit.UPLOAD:
            return self._upload_bytes
        # Fast path: most bodies are JSON, and the header need not be parsed.
        if policy.streamed_type is None or content_type == b"application/json":
            return self._json_bytes
        media_type = content_type.decode("latin-1").partition(";")[0].strip().lower()
        return self._upload_bytes if media_type == policy.streamed_type else self._json_bytes


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than the {limit} bytes allowed here.", code="body_too_large")
