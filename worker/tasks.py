"""The only Celery task: run the job with this id."""

import logging

from celery import Celery

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.service import logs, messages
from tagsmith.worker import run
from tagsmith.worker.context import Context

_log = logging.getLogger(__name__)


def register(app: Celery, context: Context) -> None:
    """Register the task that handles messages about jobs."""

    @app.task(name=messages.TASK)  # type: ignore[untyped-decorator]  # Celery ships no types
    def run_job(job_id: str) -> None:
        context.busy.set()
        try:
            run.run_job(context, job_id)
        except Unavailable as error:
            # The row is unchanged: a reaper will send another message.
            _log.warning("job not started: %s", error, extra={"job_id": job_id})
        finally:
            context.busy.clear()
            logs.bind()
