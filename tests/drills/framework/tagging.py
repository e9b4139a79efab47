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
#: A request without a response for this long counts as unanswered.
TIMEOUT_S = 2.0


class _Thread:
    """Repeats a step until the end of the `with` block."""

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
            self._over.wait(INTERVAL_S)

    def _step(self) -> None:
        raise NotImplementedError


class Tagging(_Thread):
    """Tags the same sentences over and over, without retries, and keeps each answer."""

    def __init__(self, url: str, reference: str, history: History) -> None:
        super().__init__()
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

    def first_after(self, at: float) -> float | None:
        """When the first good answer came after a time."""
        return next((each for each in self.answered_at if each > at), None)

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

    def __init__(self, database: Database, job_id: str) -> None:
        super().__init__()
        self._database = database
        self._job_id = job_id
        #: When the job was seen after more passes, and whether it had ended.
        self.seen: list[tuple[float, int, bool]] = [(time.monotonic(), 0, False)]

    def passes_at(self, at: float) -> int:
        """How many passes had been seen at a time."""
        return max(passes for seen_at, passes, _ in self.seen if seen_at <= at)

    def ended_before(self, at: float) -> bool:
        """Whether the job had ended at a time."""
        return any(ended for seen_at, _, ended in self.seen if seen_at <= at)

    def progress_after(self, at: float) -> float | None:
        """When the first pass after those of a time was seen, or the end. A job that had ended needs none."""
        if self.ended_before(at):
            return at
        before = self.passes_at(at)
        later = (
            seen_at for seen_at, passes, ended in self.seen if seen_at > at and (passes > before or ended)
        )
        return next(later, None)

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
