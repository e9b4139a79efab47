"""No body larger than its route allows is read, whatever Content-Length says."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import errors
from core.errors import TooLarge


class BodyLimit:
    """Counts the bytes of each body as they come and stops at the limit."""

    def __init__(self, app: ASGIApp, *, limit_of: Callable[[Scope], int]) -> None:
        self.app = app
        self.limit_of = limit_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.limit_of(scope)
        announced = _content_length(scope)
        if announced is not None and announced > limit:
            await errors.from_error(scope, _too_large(limit))(scope, receive, send)
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


def _content_length(scope: Scope) -> int | None:
    # The server has already refused a Content-Length that is not a number.
    return next(
        (int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()),
        None,
    )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than the {limit} bytes allowed here.", code="body_too_large")
