"""Telling the workers about a job, after its row is committed."""

import logging

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from core import wire
from core.errors import TagsmithError
from core.store import jobs
from core.store.engine import Database
from core.store.jobs import JobRow

logger = logging.getLogger(__name__)

#: A broker that does not answer must not hold up the request: the row is committed and will be swept up.
TIMEOUT_S = 1.0


class JobSender:
    """Sends "look at this row". Losing the message loses only time: a worker sweeps for jobs without one."""

    def __init__(self, redis_url: str | None) -> None:
        self._celery = _celery(redis_url) if redis_url else None

    def send(self, database: Database, job: JobRow) -> bool:
        """Send, and record it; give whether it went out."""
        if self._celery is None:
            return False
        try:
            self._celery.send_task(wire.TASK, [job.id], queue=job.queue, retry=False, ignore_result=True)
        except (OperationalError, RedisError, OSError) as error:
            logger.warning("job not sent, a sweep will", extra={"job_id": job.id, "reason": str(error)})
            return False
        try:
            with database.write() as conn:
                jobs.mark_sent(conn, job.id)
        except TagsmithError as error:
            # Worth a second message from the sweep, not a failed request: the job is stored and on its way.
            logger.warning("sending not recorded", extra={"job_id": job.id, "reason": str(error)})
        return True

    def close(self) -> None:
        """Close the connections to the broker."""
        if self._celery is not None:
            self._celery.close()


def _celery(redis_url: str) -> Celery:
    app = Celery("tagsmith", set_as_current=False)
    app.conf.update(wire.celery_settings(redis_url))
    options = dict(app.conf.broker_transport_options) | {"socket_timeout": TIMEOUT_S}
    app.conf.update(broker_transport_options=options, broker_connection_timeout=TIMEOUT_S)
    return app
