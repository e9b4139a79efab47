"""A client that tags all the time, and another that watches the job under way. Both only look; they change nothing."""

import threading
import time
from itertools import pairwise
from types import TracebackType
from typing import Self

import httpx

from tagsmith.client import ApiError, Client, ServerAway
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.jobs import events, jobs
from tagsmith.core.store.engine import Database
from tests.drills.history import History

INTERVAL_S = 0.02
#: Longer pauses between passes or answers are not usual.
GAP_S = 1.0
#: A pause that begins later than this after a fault has another cause, such as a busy machine.
CAUSED_S = 2.0
#: A request without a response for this long counts as unanswered.
TIMEOUT_S = 2.0


def _recovered_at(times: list[float], over_at: float) -> float:
    """Return the end of the last pause that the fault caused, or the end of the fault if there was none."""
    pauses = [(before, after) for before, after in pairwise(times) if after - before > GAP_S]
    return max(
        (after for before, after in pauses if after > over_at and before < over_at + CAUSED_S),
        default=over_at,
    )


class _Thread:
    """Repeats a step until the end of the `with` block."""

    interval_s = INTERVAL_S

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._over.is_set():
            self._step()
            self._over.wait(self.interval_s)

    def _step(self) -> None:
        raise NotImplementedError


class Tagging(_Thread):
    """Tags the same sentences over and over, without retries, and keeps each answer."""

    def __init__(self, url: str, reference: str, history: History, interval_s: float = INTERVAL_S) -> None:
        super().__init__()
        self.interval_s = interval_s
        self._client = Client(url, retries=0, timeout_s=TIMEOUT_S)
        self._reference = reference
        self._history = history
        #: Times of good answers.
        self.answered_at: list[float] = [time.monotonic()]
        #: Whether nobody held the port.
        self.was_refused = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._ended_at = time.monotonic()
        self._client.close()

    @property
    def worst_gap_s(self) -> float:
        """The longest time without a good answer, also one that lasted until the end."""
        times = [*self.answered_at, self._ended_at]
        return max(after - before for before, after in pairwise(times))

    def has_answered_since(self, at: float) -> bool:
        """Whether a good answer came after a time."""
        return self.answered_at[-1] > at

    def recovered_at(self, at: float) -> float:
        """When answers came as usual again, after a fault that was over at a time."""
        return _recovered_at(self.answered_at, at)

    def _step(self) -> None:
        try:
            tagged = self._client.tag(self._reference, self._history.sentences)
        except ServerAway:
            self.was_refused = True
            return
        except (ApiError, httpx.HTTPError):
            return
        self.answered_at.append(time.monotonic())
        self._history.answered(self._reference, tagged.version, tagged.tags)


class Watch(_Thread):
    """Reads the passes of a job from the database, past the faults."""

    interval_s = 0.1

    def __init__(self, database: Database, job_id: str) -> None:
        super().__init__()
        self._database = database
        self._job_id = job_id
        #: When the job was seen after more passes, how many, and whether it had ended.
        self.seen: list[tuple[float, int, bool]] = [(time.monotonic(), 0, False)]

    def passes_at(self, at: float) -> int:
        """How many passes had been seen at a time."""
        return max(passes for seen_at, passes, _ in self.seen if seen_at <= at)

    def ended_before(self, at: float) -> bool:
        """Whether the job had ended at a time."""
        return any(ended for seen_at, _, ended in self.seen if seen_at <= at)

    def has_progressed_since(self, at: float) -> bool:
        """Whether the job has made a pass after a time, or has ended."""
        return self.seen[-1][2] or self.seen[-1][1] > self.passes_at(at)

    def recovered_at(self, at: float) -> float:
        """When passes came as usual again, after a fault that was over at a time. Call it when the job has ended."""
        return at if self.ended_before(at) else _recovered_at([seen_at for seen_at, _, _ in self.seen], at)

    def _step(self) -> None:
        try:
            with self._database.read() as conn:
                ended = jobs.get(conn, self._job_id).ended
                newest = events.newest(conn, self._job_id, "pass")
        except TagsmithError:
            return
        passes = 0 if newest is None else int(newest.data["pass"])
        if (passes, ended) != self.seen[-1][1:]:
            self.seen.append((time.monotonic(), passes, ended))
