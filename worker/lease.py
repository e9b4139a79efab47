"""The lease of a job: a thread that renews it and checks for cancel and pause requests while the job runs."""

import contextvars
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from sqlalchemy.exc import SQLAlchemyError

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import leases
from tagsmith.worker.context import Context

# A cancel must take effect within one second; this is a fifth of it. A read this often costs almost nothing.
POLL_S = 0.2
# A trainer yields five times per second. Reading a large corpus can take seconds without a yield, and a first
# compilation takes longer. If a job does not stop in time, this thread ends it as cancelled, and its later results are
# ignored.
CANCEL_TIMEOUT_S = 0.4
# In the same way, this thread returns the job to the queue when the worker must stop, long before the supervisor kills
# the worker. It waits longer here, because the last state of training is worth storing.
STOP_TIMEOUT_S = 3.0

_log = logging.getLogger(__name__)


class Lease:
    """The lease of one claim of one job, renewed until the `with` block ends."""

    def __init__(
        self,
        context: Context,
        job_id: str,
        owner: str,
        give_back: Callable[[], object],
        drop: Callable[[], object],
        worked_before_s: float = 0.0,
    ) -> None:
        """Prepare the thread. It calls `give_back` (return the job to the queue) or `drop` (end it as cancelled).

        It calls them only when the work does not stop in time.
        """
        self.job_id = job_id
        self.owner = owner
        self._context = context
        self._give_back = give_back
        self._drop = drop
        self._worked_before_s = worked_before_s
        self._started_at = time.monotonic()
        self._progress: Mapping[str, Any] | None = None
        self._cancel = False
        self._pause = False
        self._lost = False
        self._over = threading.Event()
        # Runs in a copy of this thread's context, so that its log lines have the same ids.
        keep = functools.partial(contextvars.copy_context().run, self._renew_until_over)
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
        """Whether a user requested a cancel."""
        return self._cancel

    @property
    def pause(self) -> bool:
        """Whether a user requested a pause."""
        return self._pause

    @property
    def lost(self) -> bool:
        """Whether this worker no longer holds the lease."""
        return self._lost

    @property
    def worked_seconds(self) -> float:
        """The time that workers have held the job, summed over all its claims."""
        return self._worked_before_s + time.monotonic() - self._started_at

    def note(self, progress: Mapping[str, Any]) -> None:
        """Keep the progress for the next renewal, which stores it."""
        self._progress = progress

    def _renew_until_over(self) -> None:
        settings = self._context.settings
        renew_at = time.monotonic() + settings.heartbeat_seconds
        cancelling, stopping = _TimeLimit(CANCEL_TIMEOUT_S), _TimeLimit(STOP_TIMEOUT_S)
        while not self._over.wait(min(POLL_S, settings.heartbeat_seconds / 2)) and not self._lost:
            try:
                if time.monotonic() >= renew_at:
                    self._apply(self._renew())
                    renew_at = time.monotonic() + settings.heartbeat_seconds
                else:
                    self._apply(self._read_signals())
                if cancelling.exceeded(requested=self._cancel):
                    self._drop()
                    self._lost = True
                elif stopping.exceeded(requested=self._context.stop.is_set()):
                    self._give_back()
                    self._lost = True
            except (Unavailable, SQLAlchemyError, leases.LeaseLost) as error:
                # The work continues. If the database is back before another worker claims the job, nothing is
                # lost. Otherwise the next check finds the lease lost, and the work of this worker is ignored.
                _log.warning(
                    "cannot read or renew the lease", extra={"job_id": self.job_id, "error": str(error)}
                )

    def _renew(self) -> leases.Signals:
        with self._context.db.write() as conn:
            lease_s = self._context.settings.lease_seconds
            return leases.heartbeat(
                conn, self.job_id, self.owner, lease_s, self._progress, self.worked_seconds
            )

    def _read_signals(self) -> leases.Signals:
        with self._context.db.read() as conn:
            return leases.signals(conn, self.job_id, self.owner)

    def _apply(self, signals: leases.Signals) -> None:
        self._cancel = self._cancel or signals.cancel
        self._pause = self._pause or signals.pause
        self._lost = self._lost or signals.lost


class _TimeLimit:
    """A limit on how long a request may stay without effect."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: float | None = None

    def exceeded(self, *, requested: bool) -> bool:
        """Return whether the request has been pending for longer than the limit."""
        if not requested:
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since > self._limit_s
