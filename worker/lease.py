"""Holding a job: a thread that renews the lease and listens for the wishes of users while the job runs."""

import contextvars
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from sqlalchemy.exc import SQLAlchemyError

from core.errors import Unavailable
from core.store import jobs
from worker.context import Context

# A fifth of the second within which a cancel must take effect; a read this often costs nothing.
POLL_S = 0.2
# A trainer yields five times a second, but reading a large corpus may not for some seconds, a first compilation not for
# many. A job that is to be cancelled then ends from here; what its worker goes on to do counts for nothing.
CANCEL_PATIENCE_S = 0.4
# Likewise a worker asked to end gives its job back, long before whoever asked loses patience and kills it. It waits
# longer: the last state of training is worth storing.
STOP_PATIENCE_S = 3.0

_log = logging.getLogger(__name__)


class Lease:
    """One claim of one job, renewed until the block ends."""

    def __init__(
        self,
        context: Context,
        job_id: str,
        owner: str,
        give_back: Callable[[], object],
        drop: Callable[[], object],
        worked_before_s: float = 0.0,
    ) -> None:
        """`give_back` returns the job to the queue, `drop` ends it as cancelled: called when the work does not stop."""
        self.job_id = job_id
        self.owner = owner
        self._context = context
        self._give_back = give_back
        self._drop = drop
        self._worked_before_s = worked_before_s
        self._began = time.monotonic()
        self._progress: Mapping[str, Any] | None = None
        self._cancel = False
        self._pause = False
        self._lost = False
        self._over = threading.Event()
        # In a copy of this thread's context, so that its lines have the same ids.
        keep = functools.partial(contextvars.copy_context().run, self._keep)
        self._thread = threading.Thread(target=keep, name=f"lease {job_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def cancel(self) -> bool:
        """Whether someone wants the job stopped."""
        return self._cancel

    @property
    def pause(self) -> bool:
        """Whether someone wants the job to stand still."""
        return self._pause

    @property
    def lost(self) -> bool:
        """Whether the job is no longer this worker's."""
        return self._lost

    @property
    def worked_seconds(self) -> float:
        """How long workers have had the job, all its claims together."""
        return self._worked_before_s + time.monotonic() - self._began

    def note(self, progress: Mapping[str, Any]) -> None:
        """Leave progress for the next renewal to store."""
        self._progress = progress

    def _keep(self) -> None:
        settings = self._context.settings
        renew_at = time.monotonic() + settings.heartbeat_seconds
        cancelling, stopping = _Patience(CANCEL_PATIENCE_S), _Patience(STOP_PATIENCE_S)
        while not self._over.wait(min(POLL_S, settings.heartbeat_seconds / 2)) and not self._lost:
            try:
                if time.monotonic() >= renew_at:
                    self._heed(self._renew())
                    renew_at = time.monotonic() + settings.heartbeat_seconds
                else:
                    self._heed(self._look())
                if cancelling.over(wanted=self._cancel):
                    self._drop()
                    self._lost = True
                elif stopping.over(wanted=self._context.stop.is_set()):
                    self._give_back()
                    self._lost = True
            except (Unavailable, SQLAlchemyError, jobs.LeaseLost) as error:
                # The work goes on: if the database comes back before another worker claimed the job, nothing
                # was lost; if not, the next look here says so, and what this worker did counts for nothing.
                _log.warning("cannot reach the job", extra={"job_id": self.job_id, "error": str(error)})

    def _renew(self) -> jobs.Signals:
        with self._context.db.write() as conn:
            lease_s = self._context.settings.lease_seconds
            return jobs.heartbeat(conn, self.job_id, self.owner, lease_s, self._progress, self.worked_seconds)

    def _look(self) -> jobs.Signals:
        with self._context.db.read() as conn:
            return jobs.signals(conn, self.job_id, self.owner)

    def _heed(self, signals: jobs.Signals) -> None:
        self._cancel = self._cancel or signals.cancel
        self._pause = self._pause or signals.pause
        self._lost = self._lost or signals.lost


class _Patience:
    """How long something may be wanted in vain."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: float | None = None

    def over(self, *, wanted: bool) -> bool:
        """Take note of the present, and tell whether it has been wanted for too long."""
        if not wanted:
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > self._limit_s
