"""One worker: opens what it needs, then takes jobs until it is told to stop."""

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

from core import tracing, warm, wire
from core.errors import Unavailable
from core.learn.sgd_l1 import SgdL1Spec
from core.settings import Settings
from core.store import migrate
from core.store.engine import Database
from worker import reaper, run, tasks
from worker.celery_app import Worker, create_celery, sender
from worker.context import Context, Runner

SCHEMA_POLL_S = 0.5
#: A job is given back within 3 s and its last state stored within 2; what has not ended by then hangs.
SHUTDOWN_S = 15

_log = logging.getLogger(__name__)


def main(settings: Settings, runners: Mapping[str, Runner] | None = None) -> int:
    """Run a worker until a signal ends it, and give its exit code."""
    # Celery warns of running as root because of pickled messages (ours are JSON with one id in them), and at
    # every loss of Redis of a default that we have chosen on purpose.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
    app = create_celery(settings)
    assert settings.redis_url is not None
    context = Context(
        settings=settings,
        db=Database(settings.database_url),
        redis=wire.connect(settings.redis_url),
        worker_id=f"{socket.gethostname()[:64]}:{os.getpid()}:{secrets.token_hex(4)}",
        stop=threading.Event(),
        busy=threading.Event(),
        send=sender(app),
        runners=run.runners() if runners is None else runners,
        tracing=tracing.started("tagsmith-worker"),
    )
    _wait_for_schema(context.db)
    if runners is None:
        # The trainer that most jobs name; others are made ready by the first job that asks for them.
        _log.info("kernels ready", extra={"seconds": round(warm.trainer(SgdL1Spec()), 1)})
    tasks.register(app, context)

    def stop(**_: object) -> None:
        # A consumer that looks for a Redis which died with the supervisor never comes round to ending. The kernel's
        # clock ends the process whatever it does then.
        signal.alarm(SHUTDOWN_S)
        context.stop.set()

    def leave_logging_alone(**_: object) -> None:
        """Celery sets up logging unless someone answers this signal."""

    # Celery keeps only weak references to receivers; these two live as long as this call.
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
    """Wait until whoever migrates has done so: services of a stack start in any order."""
    told = False
    while True:
        try:
            if migrate.at_head(db):
                return
            reason = "the schema is not the newest"
        except Unavailable as error:
            reason = error.message
        if not told:
            _log.warning("waiting for the database: %s", reason)
            told = True
        time.sleep(SCHEMA_POLL_S)
