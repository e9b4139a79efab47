"""Connections of the HTTP server, with limits that hold before a request is known: size and time of its head."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Request line and headers. Browsers send a few KiB, and other servers accept 8 to 64.
MAX_HEAD_BYTES = 64 * 1024
#: Time for the head of a request. A client that is slower keeps a connection without a request.
HEAD_S = 20.0
#: Bytes between the name, the value and the end of a header.
SEPARATORS = 4

_REASONS = {
    408: "Request Timeout: the head of the request did not arrive in time.",
    431: f"Request Header Fields Too Large: send at most {MAX_HEAD_BYTES} bytes.",
}


class Connection(HttpToolsProtocol):
    """A connection that is closed if the head of a request is too large (431) or takes too long (408)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        #: Bytes that arrived before the head was complete, and bytes of whole headers.
        self._received = self._parsed = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Without this count, the parser would collect one endless header.
        if self._in_head:
            self._received += len(data)
            if self._received > MAX_HEAD_BYTES:
                self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:
            self._begin_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._parsed += len(name) + len(value) + SEPARATORS

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        self._parsed += len(self.url)
        if self._parsed > MAX_HEAD_BYTES:
            raise ValueError("the head is too large")  # ends the parser, which refuses the request
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or a head that came whole and is too large."""
        if self._parsed > MAX_HEAD_BYTES:
            self._refuse(431)
        else:
            super().send_400_response(msg)

    def _begin_head(self) -> None:
        self._in_head, self._received, self._parsed = True, 0, 0
        self._timer = self.loop.call_later(HEAD_S, self._refuse, 408)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        body = _REASONS[status].encode()
        head = f"HTTP/1.1 {status} {_REASONS[status].partition(':')[0]}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        self.transport.write(
            f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
        )
        self.transport.close()
