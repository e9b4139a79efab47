"""How fast a body must arrive."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from tagsmith.app.http.problems import TooSlow

T = TypeVar("T")

#: A body that stops is given up after this time. One that arrives may take longer, at this rate.
GRACE_S = 20.0
LEAST_BYTES_PER_S = 4 << 10


class Pace:
    """The time that is left for the next part of a body. It begins when it is created."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._received = 0
        self.is_over = False

    async def awaited(self, part: Awaitable[T]) -> T:
        """Wait for the next part of the body. Raise TooSlow if it does not come in time."""
        left_s = self._began + GRACE_S + self._received / LEAST_BYTES_PER_S - time.monotonic()
        try:
            async with asyncio.timeout(max(left_s, 0)):
                return await part
        except TimeoutError:
            self.is_over = True
            raise TooSlow("The body does not arrive in time. Send it again.") from None

    def count(self, size_bytes: int) -> None:
        """Count what has arrived."""
        self._received += size_bytes
