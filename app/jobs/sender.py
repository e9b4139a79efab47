"""Messages to the workers about a job, sent after its row is committed."""

import logging

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.jobs import jobs
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.service import messages
from tagsmith.core.store.engine import Database

logger = logging.getLogger(__name__)

#: A broker that does not respond may delay the request by at most this long: the row is committed, and the reaper of a
#: worker finds it.
TIMEOUT_S = 1.0


class JobSender:
    """Tells a worker that a job row is waiting.

    A lost message only delays the job, because the reaper also finds queued jobs.
    """

    def __init__(self, redis_url: str | None) -> None:
        self._celery = _celery(redis_url) if redis_url else None

    def send(self, database: Database, job: JobRow) -> bool:
        """Send the message and record that it was sent. Return whether it was sent."""
        if self._celery is None:
            return False
        try:
            self._celery.send_task(messages.TASK, [job.id], queue=job.queue, retry=False, ignore_result=True)
        except (OperationalError, RedisError, OSError) as error:
            logger.warning(
                "message not sent; the reaper will send it", extra={"job_id": job.id, "reason": str(error)}
            )
            return False
        try:
            with database.write() as conn:
                jobs.mark_sent(conn, job.id)
        except TagsmithError as error:
            # The request must not fail: the job is stored and its message is sent. The reaper sends a second message.
            logger.warning(
                "message sent, but `sent` was not recorded", extra={"job_id": job.id, "reason": str(error)}
            )
        return True

    def close(self) -> None:
        """Close the connections to the broker."""
        if self._celery is not None:
            self._celery.close()


def _celery(redis_url: str) -> Celery:
    app = Celery("tagsmith", set_as_current=False)
    app.conf.update(messages.celery_settings(redis_url))
    options = dict(app.conf.broker_transport_options) | {"socket_timeout": TIMEOUT_S}
    app.conf.update(broker_transport_options=options, broker_connection_timeout=TIMEOUT_S)
    return app
