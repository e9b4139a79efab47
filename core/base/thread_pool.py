"""Work split into pieces for several threads. Kernels release the GIL, so the threads run in parallel.

A piece writes only its own output, so results do not depend on which thread runs it, or when.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import perf_counter

#: Runs piece `piece` on thread `thread`, and may use the scratch of this thread.
RunPiece = Callable[[int, int], None]

#: Seconds of work between two points at which the caller can stop.
SLICE_SECONDS = 0.1


class ThreadPool:
    """A pool of `threads` threads, including that of the caller. Idle threads end with the pool."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._others = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def slices(self, run: RunPiece, pieces: int) -> Iterator[None]:
        """Run all pieces, and yield every SLICE_SECONDS while no piece is running."""
        taken = count()
        left = pieces
        while left > 0:
            left -= self._round(run, taken, pieces, perf_counter() + SLICE_SECONDS)
            yield

    def sweep(self, run: RunPiece, pieces: int) -> None:
        """Run all pieces of a short task without yielding."""
        self._round(run, count(), pieces, float("inf"))

    def _round(self, run: RunPiece, taken: Iterator[int], pieces: int, until: float) -> int:
        """Let the threads run pieces until none is left or the time is over; return the number of pieces done."""

        def work(thread: int) -> int:
            done = 0
            # Check the time before taking a piece: a piece that was taken must be run.
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
