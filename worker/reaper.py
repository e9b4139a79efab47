"""The reaper: a thread in every worker that finds expired leases and lost messages, so that no job is forgotten.

Any number of reapers may run: each transition happens once, and a duplicate message is harmless.
"""

import logging
import threading
import time
from datetime import datetime, timedelta

from sqlalchemy.exc import SQLAlchemyError

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.registry import generations
from tagsmith.core.service import messages
from tagsmith.core.store import clock, lease_clock
from tagsmith.worker.context import Context
from tagsmith.worker.reporter import publish_since
from tagsmith.worker.watchdog import Watchdog

# A sender needs milliseconds between commit and send. If no message is sent within this time, the sender has died.
RESEND_AFTER_S = 3.0

_log = logging.getLogger(__name__)


def start(context: Context) -> threading.Thread:
    """Sweep every `reaper_seconds` until the worker stops."""
    thread = threading.Thread(target=_sweep_until_stopped, args=(context,), name="reaper", daemon=True)
    thread.start()
    return thread


def sweep(context: Context, watchdog: Watchdog, *, reap: bool = True) -> None:
    """Requeue or fail the jobs of lost workers, and send the missing messages of queued jobs."""
    for job in _reap(context) if reap else ():
        _log.warning(
            "worker lost: job %s", job.state.value, extra={"job_id": job.id, "request_id": job.request_id}
        )
        publish_since(context.db, context.redis, job.id, job.last_seq - 1)
    watchdog.check(messages_wait=_resend(context))


def _sweep_until_stopped(context: Context) -> None:
    watchdog, grace = Watchdog(context.busy), Grace(context)
    while not context.stop.wait(context.settings.reaper_seconds):
        try:
            sweep(context, watchdog, reap=grace.is_over())
        except (Unavailable, SQLAlchemyError) as error:
            grace.begin()
            _log.warning("sweep not possible now", extra={"error": str(error)})
        except Exception:  # noqa: BLE001  # without this thread jobs of dead workers would never be found
            _log.exception("sweep failed")


class Grace:
    """Time for workers to renew their leases after an outage of the database, in which they could not.

    Without it, a reaper would take a job from a worker that has finished it and waited for room to store it.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        #: None during an outage.
        self._ends_at: float | None = 0.0

    def begin(self) -> None:
        """Record that the database could not be read or written."""
        self._ends_at = None

    def is_over(self) -> bool:
        """Whether expired leases may be trusted. Raises Unavailable while the outage lasts."""
        if self._ends_at is None:
            with self._context.db.write() as conn:
                generations.rewrite(conn)  # a full disk shows only when something is written
            self._ends_at = time.monotonic() + self._context.settings.lease_seconds
        return time.monotonic() >= self._ends_at


def _reap(context: Context) -> list[JobRow]:
    with context.db.read() as conn:
        if not leases.expired(conn, lease_clock.now(conn)):
            return []
    with context.db.write() as conn:
        return leases.reap(conn, lease_clock.now(conn), context.settings.max_losses)


def _is_recent(at: datetime, now: datetime) -> bool:
    """Whether a message may still be on its way. A time far in the future means that the clock was set back."""
    return abs(now - at) < timedelta(seconds=RESEND_AFTER_S)


def _resend(context: Context) -> bool:
    """Send missing messages again; return whether messages wait in a queue that this worker consumes."""
    with context.db.read() as conn:
        now = clock.now(conn)
        # A job that a worker or a reaper returned to the queue certainly has no message, so it need not wait.
        candidates = [
            job
            for job in jobs.unsent(conn, now)
            if (job.sent_at is None and job.attempt > 0) or not _is_recent(job.sent_at or job.queued_at, now)
        ]
    queue = messages.waiting(context.redis) if candidates else None
    if queue is None:
        return False
    for job in candidates:
        if job.id in queue:
            continue
        if not context.send(job):
            break
        with context.db.write() as conn:
            jobs.mark_sent(conn, job.id)
        _log.info("message sent again", extra={"job_id": job.id, "request_id": job.request_id})
    return any(job.id in queue and job.queue in context.settings.queues for job in candidates)
