"""The one task: look at the row of this job."""

import logging

from celery import Celery

from core import logs, wire
from core.errors import Unavailable
from worker import run
from worker.context import Context

_log = logging.getLogger(__name__)


def register(app: Celery, context: Context) -> None:
    """Make `app` answer messages about jobs."""

    @app.task(name=wire.TASK)  # type: ignore[untyped-decorator]  # Celery ships no types
    def run_job(job_id: str) -> None:
        context.busy.set()
        try:
            run.run_job(context, job_id)
        except Unavailable as error:
            # The row is as it was: a reaper will send another message.
            _log.warning("job not started: %s", error, extra={"job_id": job_id})
        finally:
            context.busy.clear()
            logs.bind()
