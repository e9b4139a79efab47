"""The live wire between API and workers: names that both must agree on, and what is said over Redis.

Nothing here is the truth. Every function survives the loss of Redis: it logs, says so, and the caller goes
on; what was not said is found in SQL by whoever needed to hear it.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import redis as redis_client
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from core.queues import QUEUES, SLOW

T = TypeVar("T")

#: The one Celery task: "look at the row of this job".
TASK = "worker.run_job"
#: Published to whenever what is served has changed.
REGISTRY_CHANNEL = "registry"

# Events are small; a thousand of them is any job's recent past, and older ones are in SQL.
STREAM_LENGTH = 1000
# After a day nobody follows live any more; SQL has the events for good.
STREAM_TTL_S = 24 * 3600
# Redis answers in under a millisecond or is away; training must not wait for it.
TIMEOUT_S = 1.0

_JOB_ID = re.compile(rb"job_[0-9a-z]{26}")
_log = logging.getLogger(__name__)


def connect(url: str) -> Redis:
    """Make a client that gives up quickly and does not retry. No connection is made before its first use."""
    return Redis.from_url(
        url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0)
    )


def celery_settings(redis_url: str) -> dict[str, object]:
    """Settings that sender and receiver of messages must share."""
    return {
        "broker_url": redis_url,
        "task_default_queue": SLOW,
        # The state of a job is in SQL; a second record of it could only disagree.
        "task_ignore_result": True,
        "result_backend": None,
        "task_serializer": "json",
        "accept_content": ["json"],
        # Senders answer a user or stand in a sweep: they try once. What was not sent is swept up later.
        "task_publish_retry": False,
        "broker_transport_options": {
            # A worker's loop acknowledges a message only after its job. A redelivery meanwhile would be
            # harmless, since the lease says who has the job; this keeps it rare.
            "visibility_timeout": 12 * 3600,
            "socket_timeout": 5.0,
            "socket_connect_timeout": TIMEOUT_S,
            "socket_keepalive": True,
            "health_check_interval": 25,
            "max_retries": 0,
            "queue_order_strategy": "sorted",
        },
    }


def stream_key(job_id: str) -> str:
    """Name the Redis stream of a job. Its entries have one field: `event` or `tick`, each with JSON."""
    return f"job:{job_id}:events"


def publish_event(redis: Redis, job_id: str, event: Mapping[str, Any]) -> bool:
    """Tell followers of a job about one event that is in SQL."""
    return publish_events(redis, job_id, [event])


def publish_events(redis: Redis, job_id: str, events: Sequence[Mapping[str, Any]]) -> bool:
    """Tell followers of a job about events that are in SQL, in order. False when Redis was away."""
    return _say(redis, job_id, [{"event": json.dumps(event)} for event in events])


def publish_tick(redis: Redis, job_id: str, progress: Mapping[str, Any]) -> bool:
    """Show followers of a job where it stands; a tick is not an event and is kept nowhere else."""
    return _say(redis, job_id, [{"tick": json.dumps(progress)}])


def bump_registry(redis: Redis) -> bool:
    """Nudge every API process to look at `registry.generation` now instead of at its next poll."""
    return _tried("nudge the API", lambda: redis.publish(REGISTRY_CHANNEL, "changed")) is not None


def waiting(redis: Redis) -> frozenset[str] | None:
    """Give the ids of the jobs whose messages wait in some queue, None when Redis is away."""
    # A message names its arguments in clear text in its headers, so its layout need not be known here.
    return _tried(
        "look into the queues",
        lambda: frozenset(
            match.decode() for message in _entries(redis) for match in _JOB_ID.findall(message)
        ),
    )


def _entries(redis: Redis) -> list[bytes]:
    entries: list[Any] = []
    for queue in QUEUES:
        waiting_there: Any = redis.lrange(queue, 0, -1)
        entries += waiting_there
    return [entry.encode() if isinstance(entry, str) else entry for entry in entries]


def _say(redis: Redis, job_id: str, entries: Sequence[dict[Any, Any]]) -> bool:
    def send() -> bool:
        key = stream_key(job_id)
        with redis.pipeline(transaction=False) as pipe:
            for entry in entries:
                pipe.xadd(key, entry, maxlen=STREAM_LENGTH, approximate=True)
            pipe.expire(key, STREAM_TTL_S)
            pipe.execute()
        return True

    return _tried("tell followers", send, job_id=job_id) or False


def _tried(what: str, act: Callable[[], T], **extra: object) -> T | None:
    """Do something with Redis; None when it is away."""
    try:
        result = act()
    except (redis_client.RedisError, OSError) as error:
        if not _outage.begun:
            _outage.begun = True
            _log.warning("Redis is away: could not %s", what, extra={"error": str(error), **extra})
        return None
    if _outage.begun:
        _outage.begun = False
        _log.info("Redis is back", extra=extra)
    return result


class _Outage:
    """Remembers for the logs of this process that Redis is away: worth one line, not thousands."""

    begun = False


_outage = _Outage()
