"""Work cut into pieces, done by several threads that hold no GIL while they are in a kernel.

A piece writes only what is its own, so that nothing depends on which thread does it, or when.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import perf_counter

#: Does piece `piece` as thread `thread`, whose scratch it may use.
Run = Callable[[int, int], None]

#: Seconds of work between two chances to stop.
SLICE_SECONDS = 0.1


class Pool:
    """So many threads, the caller's among them. Idle threads end with the pool."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._others = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def slices(self, run: Run, pieces: int) -> Iterator[None]:
        """Do all pieces, yielding every now and then with no piece under way."""
        taken = count()
        left = pieces
        while left > 0:
            left -= self._round(run, taken, pieces, perf_counter() + SLICE_SECONDS)
            yield

    def sweep(self, run: Run, pieces: int) -> None:
        """Do all pieces of something short."""
        self._round(run, count(), pieces, float("inf"))

    def _round(self, run: Run, taken: Iterator[int], pieces: int, until: float) -> int:
        """Let every thread take the next piece, again and again, until none is left or time is up; the pieces done."""

        def work(thread: int) -> int:
            done = 0
            # Time is looked at before a piece is taken: one that was taken must be done.
            while perf_counter() < until:
                piece = next(taken)
                if piece >= pieces:
                    break
                run(piece, thread)
                done += 1
            return done

        if self._others is None:
            return work(0)
        others = [self._others.submit(work, thread) for thread in range(1, self.threads)]
        return work(0) + sum(other.result() for other in others)
