"""The reaper: a thread in every worker that finds expired leases and lost messages, so that no job is forgotten.

Any number of reapers may run: each transition happens once, and a duplicate message is harmless.
"""

import logging
import threading
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.service import messages
from tagsmith.core.store import clock
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


def sweep(context: Context, watchdog: Watchdog) -> None:
    """Requeue or fail the jobs of lost workers, and send the missing messages of queued jobs."""
    for job in _reap(context):
        _log.warning(
            "worker lost: job %s", job.state.value, extra={"job_id": job.id, "request_id": job.request_id}
        )
        publish_since(context.db, context.redis, job.id, job.last_seq - 1)
    watchdog.check(messages_wait=_resend(context))


def _sweep_until_stopped(context: Context) -> None:
    watchdog = Watchdog(context.busy)
    while not context.stop.wait(context.settings.reaper_seconds):
        try:
            sweep(context, watchdog)
        except (Unavailable, SQLAlchemyError) as error:
            _log.warning("sweep not possible now", extra={"error": str(error)})
        except Exception:  # noqa: BLE001  # without this thread jobs of dead workers would never be found
            _log.exception("sweep failed")


def _reap(context: Context) -> list[JobRow]:
    with context.db.read() as conn:
        if not leases.expired(conn, clock.now(conn)):
            return []
    with context.db.write() as conn:
        return leases.reap(conn, clock.now(conn), context.settings.max_losses)


def _resend(context: Context) -> bool:
    """Send missing messages again; return whether messages wait in a queue that this worker consumes."""
    with context.db.read() as conn:
        now = clock.now(conn)
        # A job that a worker or a reaper returned to the queue certainly has no message, so it need not wait.
        candidates = [
            job
            for job in jobs.unsent(conn, now)
            if (job.sent_at is None and job.attempt > 0)
            or (job.sent_at or job.queued_at) <= now - timedelta(seconds=RESEND_AFTER_S)
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
