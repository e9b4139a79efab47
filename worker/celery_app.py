"""Celery, cut down to what is needed of it: carry the id of a job to one free worker."""

import logging
import signal
from collections.abc import Callable
from types import FrameType

import celery.apps.worker
import kombu.exceptions
import redis
from celery import Celery

from core import wire
from core.errors import Invalid
from core.settings import Settings
from core.store.jobs import JobRow

_log = logging.getLogger(__name__)


def create_celery(settings: Settings) -> Celery:
    """Make the Celery application of a worker: one process, one job at a time."""
    if settings.redis_url is None:
        raise Invalid("a worker needs TAGSMITH_REDIS_URL", code="invalid_setting")
    app = Celery("tagsmith", set_as_current=False)
    app.conf.update(wire.celery_settings(settings.redis_url))
    app.conf.update(
        # The job runs in the main thread of this process: nothing is forked, so nothing compiled, no socket
        # and no lock crosses a fork. N workers are N processes.
        worker_pool="solo",
        worker_concurrency=1,
        # The lease says who has a job, so a message may be forgotten as soon as it was read.
        task_acks_late=False,
        # No worker hoards messages that another could take. The usual way to say so, a multiplier of 1, would
        # end a worker's consuming for good when Redis went away before a message was acknowledged.
        worker_prefetch_multiplier=0,
        worker_disable_prefetch=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # Redis may come and go at any time, the start included.
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Chatter among workers: a worker that trains cannot answer it, and nobody asks.
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        # Logs are set up by this process, as JSON lines.
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    return app


class Worker(celery.apps.worker.Worker):  # type: ignore[misc]  # Celery ships no types
    """Celery's worker, which may be told to end any number of times at once."""

    def install_platform_tweaks(self, worker: object) -> None:
        """Take the signals."""
        super().install_platform_tweaks(worker)
        heed_once(signal.SIGTERM)


def heed_once(number: signal.Signals) -> None:
    """Have the handler of a signal run the first time only.

    A supervisor that dies signals its workers once for each of its threads. Python runs a handler between any two
    instructions, its own included, and Celery's holds locks: entered again, it would wait for itself for ever.
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
    """Make the function that gives the broker a message about a job."""

    def send(job: JobRow) -> bool:
        try:
            app.send_task(wire.TASK, [job.id], queue=job.queue)
        except (kombu.exceptions.KombuError, redis.RedisError, OSError) as error:
            _log.warning("message not sent", extra={"job_id": job.id, "error": str(error)})
            return False
        return True

    return send
