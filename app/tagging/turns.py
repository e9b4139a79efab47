"""Limits the tagging requests per iteration of the event loop, so that other work is not delayed.

An iteration of the event loop runs all callbacks that are ready. With hundreds of clients that tag without pause, one
iteration handles hundreds of requests. A request that needs several iterations, for example to run SQL in a thread,
waits for all of them each time. Therefore an iteration (a "round") starts only a few tagging requests. The others wait
in a queue.
"""

import asyncio
from collections import deque

#: Tagging requests per round. They take a few milliseconds.
EACH_ROUND = 8


class Turns:
    """Counts the tagging requests of a round. Use it on the event loop only."""

    def __init__(self) -> None:
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait until this or a later round can start one more request."""
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
            if not turn.done():  # otherwise the client has disconnected
                turn.set_result(None)
                self._taken += 1
        if self._taken:
            asyncio.get_running_loop().call_soon(self._next_round)
