"""What keeps jobs from being forgotten: a thread in every worker that finds lost leases and lost messages.

Any number of them may run: each transition happens once, and a message too many is harmless.
"""

import logging
import threading
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from core import wire
from core.errors import Unavailable
from core.store import clock, jobs
from core.store.jobs import JobRow
from worker.context import Context
from worker.reporter import publish_since
from worker.watchdog import Watchdog

# A sender needs milliseconds between commit and send; whoever took longer than this has died in between.
RESEND_AFTER_S = 3.0

_log = logging.getLogger(__name__)


def start(context: Context) -> threading.Thread:
    """Sweep every `reaper_seconds` until the worker stops."""
    thread = threading.Thread(target=_sweep_on, args=(context,), name="reaper", daemon=True)
    thread.start()
    return thread


def sweep(context: Context, watchdog: Watchdog) -> None:
    """Take jobs from lost workers, and send the messages that queued jobs lack."""
    for job in _reap(context):
        _log.warning(
            "worker lost: job %s", job.state.value, extra={"job_id": job.id, "request_id": job.request_id}
        )
        publish_since(context.db, context.redis, job.id, job.last_seq - 1)
    watchdog.look(messages_wait=_resend(context))


def _sweep_on(context: Context) -> None:
    watchdog = Watchdog(context.busy)
    while not context.stop.wait(context.settings.reaper_seconds):
        try:
            sweep(context, watchdog)
        except (Unavailable, SQLAlchemyError) as error:
            _log.warning("cannot sweep now", extra={"error": str(error)})
        except Exception:  # noqa: BLE001  # without this thread jobs of dead workers would never be found
            _log.exception("sweep failed")


def _reap(context: Context) -> list[JobRow]:
    with context.db.read() as conn:
        if not jobs.expired(conn, clock.now(conn)):
            return []
    with context.db.write() as conn:
        return jobs.reap(conn, clock.now(conn))


def _resend(context: Context) -> bool:
    """Send what was never sent or was forgotten; tell whether messages wait that this worker should have taken."""
    with context.db.read() as conn:
        now = clock.now(conn)
        # A job given back, by its worker or by a reaper, has certainly no message: it need not wait.
        candidates = [
            job
            for job in jobs.unsent(conn, now)
            if (job.sent_at is None and job.attempt > 0)
            or (job.sent_at or job.queued_at) <= now - timedelta(seconds=RESEND_AFTER_S)
        ]
    queue = wire.waiting(context.redis) if candidates else None
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
