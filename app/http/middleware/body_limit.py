"""Limit of request bodies: at most the limit of the route is read, regardless of Content-Length, and not too slowly.

A request can be refused before its body was read. Many clients do not look for a response while they send, and see
only a connection that was reset. So the rest of a refused body is read and dropped, within limits, before the response.
"""

from collections.abc import Iterable

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagsmith.app.http import problems
from tagsmith.app.http.memory import COUNTED_BYTES, RequestMemory
from tagsmith.app.http.pace import Pace
from tagsmith.app.http.policy import MAX_SPEC_BYTES, BodyLimit, RoutePolicy, policy_of
from tagsmith.core.base.errors import TooLarge
from tagsmith.core.service.settings import Settings

#: How much of a refused body is read and dropped, and for how long, so that its client sees the response.
DROPPED_BYTES = 64 << 20
DROPPED_S = 10.0


class BodyLimiter:
    """Counts the bytes of each body as they arrive and stops at the limit."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self.app = app
        self._tagging_bytes = settings.max_json_bytes
        self._spec_bytes = min(MAX_SPEC_BYTES, settings.max_json_bytes)
        self._upload_bytes = settings.max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced, content_type, more, waits = _framing(scope["headers"])
        limit, kept = self._limit_bytes(policy_of(scope), content_type or b"")
        received = held = 0
        memory: RequestMemory = scope["app"].state.runtime.memory
        if kept:
            limit = min(limit, memory.limit_bytes)

        pace = Pace() if kept else None

        async def counted() -> Message:
            nonlocal received, held, more
            # Uploads and streams have a pace of their own. After the body, this waits for the end of the connection.
            if pace is not None and more:
                message = await pace.awaited(receive())
                pace.count(len(message.get("body", b"")))
            else:
                message = await receive()
            received += len(message.get("body", b""))
            more = bool(message.get("more_body"))
            if received > limit:
                raise _too_large(limit)
            if kept and received - held > COUNTED_BYTES:
                memory.take(received - held)
                held = received
            return message

        async def sent(message: Message) -> None:
            refused = message["type"] == "http.response.start" and message["status"] >= 400
            if refused and more:
                is_over = pace is not None and pace.is_over
                if is_over or (waits and not received) or not await _drop(receive):
                    # The rest of the body would keep the connection busy for as long as its client likes.
                    message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        if content_type is None:
            await problems.from_error(scope, _two_types())(scope, receive, sent)
        elif announced > limit:
            await problems.from_error(scope, _too_large(limit))(scope, receive, sent)
        else:
            try:
                await self.app(scope, counted, sent)
            finally:
                memory.give_back(held)

    def _limit_bytes(self, policy: RoutePolicy, content_type: bytes) -> tuple[int, bool]:
        """Return the limit of a body, and whether it is kept in memory. Uploads and streams are not."""
        if policy.body is BodyLimit.UPLOAD:
            return self._upload_bytes, False
        json_bytes = self._tagging_bytes if policy.body is BodyLimit.TAGGING else self._spec_bytes
        # Fast path: most bodies are JSON, and the header need not be parsed.
        if policy.streamed_type is None or content_type == b"application/json":
            return json_bytes, True
        media_type = content_type.decode("latin-1").partition(";")[0].strip().lower()
        streamed = media_type == policy.streamed_type
        return self._upload_bytes if streamed else json_bytes, not streamed


def _framing(headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, bytes | None, bool, bool]:
    """Return announced bytes, media type, whether a body follows, and whether the client waits for 100 Continue.

    The media type is None if there are two: the limit could use one, and the reader the other.
    """
    announced, types, more, waits = 0, list[bytes](), False, False
    for name, value in headers:
        if name == b"content-length":
            # The server refuses a Content-Length that is not a number.
            announced = int(value) if value.isdigit() else 0
            more = announced > 0
        elif name == b"content-type":
            types.append(value)
        elif name == b"transfer-encoding":
            more = True
        elif name == b"expect":
            # The client sends its body only after "100 Continue", which reading would cause.
            waits = True
    return announced, None if len(types) > 1 else b"".join(types), more, waits


def _two_types() -> problems.Malformed:
    return problems.Malformed("The request has two Content-Type headers. Send one.", code="repeated_header")


async def _drop(receive: Receive) -> bool:
    """Read the rest of a body and drop it. Return whether its end was reached."""
    dropped = 0
    with anyio.move_on_after(DROPPED_S):
        while dropped < DROPPED_BYTES:
            message = await receive()
            dropped += len(message.get("body", b""))
            if not message.get("more_body"):
                return True
    return False


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than the {limit} bytes allowed here.", code="body_too_large")
