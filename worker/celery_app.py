"""Celery, reduced to one purpose: deliver the id of a job to one free worker."""

import logging
import signal
from collections.abc import Callable
from types import FrameType

import celery.apps.worker
import kombu.exceptions
import redis
from celery import Celery

from tagsmith.core.base.errors import Invalid
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings

_log = logging.getLogger(__name__)


def create_celery(settings: Settings) -> Celery:
    """Create the Celery application of a worker: one process, one job at a time."""
    if settings.redis_url is None:
        raise Invalid("A worker needs Redis. Set TAGSMITH_REDIS_URL.", code="invalid_setting")
    app = Celery("tagsmith", set_as_current=False)
    app.conf.update(messages.celery_settings(settings.redis_url))
    app.conf.update(
        # The job runs in the main thread of this process. Nothing forks, so no compiled code, socket or lock
        # is shared with a child process. N workers are N processes.
        worker_pool="solo",
        worker_concurrency=1,
        # The lease records which worker has a job, so a message can be acknowledged as soon as it is read.
        task_acks_late=False,
        # A worker does not prefetch messages that another worker could take. The usual setting, a multiplier
        # of 1, stops the consumer for good when Redis goes away before a message is acknowledged.
        worker_prefetch_multiplier=0,
        worker_disable_prefetch=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # Redis can be unavailable at any time, including at the start.
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Messages between workers are off: a worker that trains cannot respond to them, and nothing uses them.
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        # This process configures logging itself, as JSON lines.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    return app


class Worker(celery.apps.worker.Worker):  # type: ignore[misc]  # Celery ships no types
    """Celery's worker, made safe against several stop signals in quick succession."""

    def install_platform_tweaks(self, worker: object) -> None:
        """Install the signal handlers."""
        super().install_platform_tweaks(worker)
        heed_once(signal.SIGTERM)


def heed_once(number: signal.Signals) -> None:
    """Make the handler of a signal run only the first time.

    A supervisor that dies signals its workers once for each of its threads. Python runs a handler between any two
    instructions, including those of the handler itself. Celery's handler holds locks, so a nested call would deadlock.
    """
    handle = signal.getsignal(number)
    assert callable(handle)
    heeded = False

    def once(number: int, frame: FrameType | None) -> None:
        nonlocal heeded
        if not heeded:
            heeded = True
            handle(number, frame)

    signal.signal(number, once)


def sender(app: Celery) -> Callable[[JobRow], bool]:
    """Return the function that sends a message about a job to the broker."""

    def send(job: JobRow) -> bool:
        try:
            app.send_task(messages.TASK, [job.id], queue=job.queue)
        except (kombu.exceptions.KombuError, redis.RedisError, OSError) as error:
            _log.warning("message not sent", extra={"job_id": job.id, "error": str(error)})
            return False
        return True

    return send
