"""Holding a job: a thread that renews the lease and listens for the wish to cancel while the job runs."""

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

# Half of the second within which a cancel must take effect; a read this often costs nothing.
POLL_S = 0.5
# A trainer yields five times a second, but a first compilation may not yield for many; a worker asked to end
# then gives its job back from here, long before whoever asked loses patience and kills it.
PATIENCE_S = 3.0

_log = logging.getLogger(__name__)


class Lease:
    """One claim of one job, renewed until the block ends."""

    def __init__(self, context: Context, job_id: str, owner: str, give_back: Callable[[], object]) -> None:
        self.job_id = job_id
        self.owner = owner
        self._context = context
        self._give_back = give_back
        self._progress: Mapping[str, Any] | None = None
        self._cancel = False
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
    def lost(self) -> bool:
        """Whether the job is no longer this worker's."""
        return self._lost

    def note(self, progress: Mapping[str, Any]) -> None:
        """Leave progress for the next renewal to store."""
        self._progress = progress

    def _keep(self) -> None:
        settings = self._context.settings
        renew_at = time.monotonic() + settings.heartbeat_seconds
        stop_seen_at: float | None = None
        while not self._over.wait(min(POLL_S, settings.heartbeat_seconds / 2)) and not self._lost:
            try:
                if time.monotonic() >= renew_at:
                    self._heed(self._renew())
                    renew_at = time.monotonic() + settings.heartbeat_seconds
                else:
                    self._heed(self._look())
                if self._context.stop.is_set():
                    stop_seen_at = stop_seen_at or time.monotonic()
                    if time.monotonic() - stop_seen_at > PATIENCE_S:
                        self._give_back()
                        self._lost = True
            except (Unavailable, SQLAlchemyError, jobs.LeaseLost) as error:
                # The work goes on: if the database comes back before another worker claimed the job, nothing
                # was lost; if not, the next look here says so, and what this worker did counts for nothing.
                _log.warning("cannot reach the job", extra={"job_id": self.job_id, "error": str(error)})

    def _renew(self) -> jobs.Signals:
        with self._context.db.write() as conn:
            lease_s = self._context.settings.lease_seconds
            return jobs.heartbeat(conn, self.job_id, self.owner, lease_s, self._progress)

    def _look(self) -> jobs.Signals:
        with self._context.db.read() as conn:
            return jobs.signals(conn, self.job_id, self.owner)

    def _heed(self, signals: jobs.Signals) -> None:
        self._cancel = self._cancel or signals.cancel
        self._lost = self._lost or signals.lost
