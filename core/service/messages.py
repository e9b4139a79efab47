"""Messages between API and workers over Redis, and the names that both use.

The state is in SQL, and Redis carries messages only. All functions tolerate an outage of Redis: they log it and return,
and the receiver finds the missed state in SQL.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import redis as redis_client
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tagsmith.core.service.queues import QUEUES, SLOW

T = TypeVar("T")

#: The only Celery task. It makes a worker look at the row of a job.
TASK = "worker.run_job"
#: Channel with one message per change of an alias or version.
REGISTRY_CHANNEL = "registry"

# Enough for the recent past of any job; SQL has all events.
STREAM_LENGTH = 1000
# Readers of a stream follow it; SQL keeps the events. Longer times would cost about 8 kB per job that ended.
STREAM_TTL_S = 10 * 60
# Redis responds within a millisecond or is down; training must not wait for it.
TIMEOUT_S = 1.0

_JOB_ID = re.compile(rb"job_[0-9a-z]{26}")
_log = logging.getLogger(__name__)


def connect(url: str) -> Redis:
    """Create a client with short timeouts and without retries. It connects at first use."""
    return Redis.from_url(
        url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0)
    )


def broker_url(redis_url: str) -> str:
    """Return the URL of Redis in the form of Celery, which differs for Unix sockets."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"


class HiddenUrl(str):
    """A URL that may contain a password, which its representation does not show: Celery prints its settings."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'...'"


def celery_settings(redis_url: str) -> dict[str, object]:
    """Return the Celery settings that sender and receiver share."""
    return {
        "broker_url": HiddenUrl(broker_url(redis_url)),
        "task_default_queue": SLOW,
        # The state of a job is in SQL only; a second record could contradict it.
        "task_ignore_result": True,
        "result_backend": None,
        "task_serializer": "json",
        "accept_content": ["json"],
        # Senders try once. The reaper sends again what was not sent.
        "task_publish_retry": False,
        "broker_transport_options": {
            # A worker acknowledges a message only after its job. An earlier redelivery is harmless, because the
            # lease decides which worker has the job; a long timeout keeps it rare.
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
    """Return the key of the Redis stream of a job. Entries have one field with JSON: `event` or `tick`."""
    return f"job:{job_id}:events"


def publish_event(redis: Redis, job_id: str, event: Mapping[str, Any]) -> bool:
    """Publish one event of a job. The event is already in SQL."""
    return publish_events(redis, job_id, [event])


def publish_events(redis: Redis, job_id: str, events: Sequence[Mapping[str, Any]]) -> bool:
    """Publish events of a job, in order. They are already in SQL. Returns False if Redis is down."""
    return _append(redis, job_id, [{"event": json.dumps(event)} for event in events])


def publish_tick(redis: Redis, job_id: str, progress: Mapping[str, Any]) -> bool:
    """Publish the progress of a job. A tick is not an event and is not stored."""
    return _append(redis, job_id, [{"tick": json.dumps(progress)}])


def bump_registry(redis: Redis) -> bool:
    """Make all API processes read `registry.generation` now instead of at their next poll."""
    return _attempt("notify the API", lambda: redis.publish(REGISTRY_CHANNEL, "changed")) is not None


def waiting(redis: Redis) -> frozenset[str] | None:
    """Return the ids of jobs with a message in a queue; None if Redis is down."""
    # The headers of a message contain its arguments as text, so its layout does not matter here.
    return _attempt(
        "read the queues",
        lambda: frozenset(
            match.decode() for message in _entries(redis) for match in _JOB_ID.findall(message)
        ),
    )


def _entries(redis: Redis) -> list[bytes]:
    entries: list[Any] = []
    for queue in QUEUES:
        queued: Any = redis.lrange(queue, 0, -1)
        entries += queued
    return [entry.encode() if isinstance(entry, str) else entry for entry in entries]


def _append(redis: Redis, job_id: str, entries: Sequence[dict[Any, Any]]) -> bool:
    def send() -> bool:
        key = stream_key(job_id)
        with redis.pipeline(transaction=False) as pipe:
            for entry in entries:
                pipe.xadd(key, entry, maxlen=STREAM_LENGTH, approximate=True)
            pipe.expire(key, STREAM_TTL_S)
            pipe.execute()
        return True

    return _attempt("publish events", send, job_id=job_id) or False


def _attempt(what: str, act: Callable[[], T], **extra: object) -> T | None:
    """Call a function that uses Redis; return None if Redis is down."""
    try:
        result = act()
    except (redis_client.RedisError, OSError) as error:
        if not _outage.noticed:
            _outage.noticed = True
            _log.warning("Redis is unavailable: could not %s", what, extra={"error": str(error), **extra})
        return None
    if _outage.noticed:
        _outage.noticed = False
        _log.info("Redis is back", extra=extra)
    return result


class _Outage:
    """Whether this process has noticed an outage of Redis, so that it logs one line and not thousands."""

    noticed = False


_outage = _Outage()
