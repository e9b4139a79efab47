"""Turns on the event loop, so that everything else finds a gap between requests to tag.

An event loop runs all that is ready before it looks for more. With some hundred clients that tag without pause, one
round of it is some hundred requests long, and whoever needs several rounds (a request that asks SQL in a thread does)
waits for all of them each time. So a round takes a few requests to tag, and the others wait for theirs, in order.
"""

import asyncio
from collections import deque

#: Requests to tag in one round: some milliseconds.
EACH_ROUND = 8


class Turns:
    """Counts what a round has taken. Lives on the event loop."""

    def __init__(self) -> None:
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait until this round, or a later one, has room for one more."""
        if self._taken < EACH_ROUND and not self._waiting:
            if self._taken == 0:
                asyncio.get_running_loop().call_soon(self._next_round)
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._taken = 0
        while self._waiting and self._taken < EACH_ROUND:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client has gone
                turn.set_result(None)
                self._taken += 1
        if self._taken:
            asyncio.get_running_loop().call_soon(self._next_round)
