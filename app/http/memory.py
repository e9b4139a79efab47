"""Memory of JSON bodies: counted before they are parsed, and limited over all requests of a process.

A parsed body takes many times its size: an empty list is 3 bytes of JSON and 64 bytes of memory.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tagsmith.core.base.errors import TooLarge, Unavailable

#: Memory of one value: a short string or an empty list, and its place in a list.
VALUE_BYTES = 80
#: Counted at a time, in less than a millisecond.
SLICE_BYTES = 256 << 10
#: Smaller bodies are not counted: the limit of connections bounds them.
COUNTED_BYTES = 64 << 10


class RequestMemory:
    """The memory of the requests in progress. Use it on the event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._held_bytes = 0

    @asynccontextmanager
    async def held(self, raw: bytes) -> AsyncIterator[None]:
        """Hold the memory that a body takes while it is parsed and processed."""
        size_bytes = 0
        for start in range(0, len(raw), SLICE_BYTES):
            if start:
                await asyncio.sleep(0)  # let other requests pass
            size_bytes += VALUE_BYTES * count_values(raw[start : start + SLICE_BYTES])
            # The body itself is held, too, while it is parsed.
            if size_bytes + len(raw) > self.limit_bytes:
                raise TooLarge(
                    f"Parsing this body takes more than the {self.limit_bytes >> 20} MiB of memory that are allowed. "
                    "Send several smaller requests.",
                    code="too_many_values",
                )
        self.take(size_bytes)
        try:
            yield
        finally:
            self.give_back(size_bytes)

    def take(self, size_bytes: int) -> None:
        """Hold memory, or raise Unavailable if all of it is held."""
        if self._held_bytes + size_bytes > self.limit_bytes:
            raise Unavailable("Too many large requests at once. Try again later.", code="overloaded")
        self._held_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Release memory."""
        self._held_bytes -= size_bytes


def count_values(raw: bytes) -> int:
    """Return about how many values a JSON text has, without parsing it: commas in strings count, too."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")
