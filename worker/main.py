"""One worker: it opens its connections, then takes jobs until a signal stops it."""

import logging
import os
import secrets
import signal
import socket
import threading
import time
import warnings
from collections.abc import Mapping

from celery import signals
from celery.exceptions import CPendingDeprecationWarning
from celery.platforms import SecurityWarning

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1Spec
from tagsmith.core.pipeline import warm
from tagsmith.core.service import messages, tracing
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import migrate
from tagsmith.core.store.engine import Database
from tagsmith.worker import reaper, run, scratch, tasks
from tagsmith.worker.celery_app import Worker, create_celery, sender
from tagsmith.worker.context import Context, Runner

SCHEMA_POLL_S = 0.5
#: A job is returned to the queue within 3 s and its last state stored within 2 s. A process that still runs hangs.
SHUTDOWN_S = 15

_log = logging.getLogger(__name__)


def main(settings: Settings, runners: Mapping[str, Runner] | None = None) -> int:
    """Run a worker until a signal stops it; return its exit code."""
    # Celery warns about running as root because of pickled messages, but our messages are JSON with one id. It also
    # warns about a default, chosen on purpose, each time the connection to Redis is lost.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    app = create_celery(settings)
    assert settings.redis_url is not None
    context = Context(
        settings=settings,
        db=Database(settings.database_url),
        redis=messages.connect(settings.redis_url),
        worker_id=f"{socket.gethostname()[:64]}:{os.getpid()}:{secrets.token_hex(4)}",
        stop=threading.Event(),
        busy=threading.Event(),
        send=sender(app),
        runners=run.runners() if runners is None else runners,
        tracing=tracing.started("tagsmith-worker"),
    )
    if left := scratch.remove_leftovers():
        _log.info("removed the files of workers that are gone", extra={"folders": left})
    _wait_for_schema(context.db)
    if runners is None:
        # Most jobs use this trainer. The first job that uses another trainer compiles its kernels.
        _log.info("kernels ready", extra={"seconds": round(warm.trainer(SgdL1Spec()), 1)})
    tasks.register(app, context)

    def stop(**_: object) -> None:
        # A consumer that waits for a Redis which died with the supervisor never stops by itself. The alarm of the
        # operating system ends the process in that case.
        signal.alarm(SHUTDOWN_S)
        context.stop.set()

    def say_ready(**_: object) -> None:
        if settings.worker_ready_file is not None:
            settings.worker_ready_file.touch()

    def leave_logging_alone(**_: object) -> None:
        """Do nothing: Celery configures logging unless a receiver is connected to this signal."""

    # Celery keeps only weak references to receivers. These functions exist until this call returns.
    signals.worker_ready.connect(say_ready)
    signals.worker_shutting_down.connect(stop)
    signals.setup_logging.connect(leave_logging_alone)
    reaping = reaper.start(context)
    worker = Worker(
        app=app,
        hostname=f"{context.worker_id}@tagsmith",
        queues=list(settings.queues),
        loglevel=settings.logging_level,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    _log.info("worker starts", extra={"worker": context.worker_id})
    try:
        worker.start()
    finally:
        context.stop.set()
        reaping.join(timeout=settings.reaper_seconds)
        context.redis.close()
        context.db.dispose()
        if context.tracing is not None:
            context.tracing.close()
    return int(worker.exitcode or 0)


def _wait_for_schema(db: Database) -> None:
    """Wait until the migrations have run: the services of a stack start in any order."""
    notified = False
    while True:
        try:
            if migrate.at_head(db):
                return
            reason = "the schema is not the newest"
        except Unavailable as error:
            reason = error.message
        if not notified:
            _log.warning("waiting for the database: %s", reason)
            notified = True
        time.sleep(SCHEMA_POLL_S)
