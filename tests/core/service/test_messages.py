import json
from contextlib import closing
from pathlib import Path
from typing import Any

import kombu
import pytest
from celery import Celery
from redis.connection import Connection

from tagsmith.core.service import messages, queues
from tagsmith.core.store.ids import new_id
from tests.services import Listener, RedisServer, free_port

EVENT = {"seq": 1, "type": "state", "message": "queued", "data": {}}


def entries(redis: Any, job_id: str) -> list[dict[bytes, bytes]]:
    return [fields for _, fields in redis.xrange(messages.stream_key(job_id))]


def test_events_and_ticks_share_a_stream_in_order(redis_url: str) -> None:
    job_id = new_id("job")
    with messages.connect(redis_url) as redis:
        assert messages.publish_event(redis, job_id, EVENT)
        assert messages.publish_tick(redis, job_id, {"pass": 1})
        assert messages.publish_events(redis, job_id, [EVENT | {"seq": 2}, EVENT | {"seq": 3}])
        found = entries(redis, job_id)
        ttl_s: Any = redis.ttl(messages.stream_key(job_id))
    assert [key for fields in found for key in fields] == [b"event", b"tick", b"event", b"event"]
    assert json.loads(found[0][b"event"]) == EVENT
    assert json.loads(found[1][b"tick"]) == {"pass": 1}
    assert messages.STREAM_TTL_S / 2 < ttl_s <= messages.STREAM_TTL_S


def test_a_stream_does_not_grow_without_end(redis_url: str) -> None:
    job_id = new_id("job")
    with messages.connect(redis_url) as redis:
        for _ in range(30):
            messages.publish_events(redis, job_id, [EVENT] * 100)
        assert len(entries(redis, job_id)) <= 1.2 * messages.STREAM_LENGTH


def test_a_nudge_reaches_who_listens(redis_url: str) -> None:
    with (
        messages.connect(redis_url) as redis,
        closing(Listener(redis, messages.REGISTRY_CHANNEL)) as listener,
    ):
        assert messages.bump_registry(redis)
        assert len(listener.heard()) == 1


def test_waiting_names_the_jobs_whose_messages_celery_has_queued(own_redis: RedisServer) -> None:
    ids = {new_id("job") for _ in range(3)}
    app = Celery("sender", set_as_current=False)
    app.conf.update(messages.celery_settings(own_redis.url))
    with messages.connect(own_redis.url) as redis:
        assert messages.waiting(redis) == frozenset()
        for job_id, queue in zip(ids, (*queues.QUEUES, queues.SLOW), strict=True):
            app.send_task(messages.TASK, [job_id], queue=queue)
        assert messages.waiting(redis) == ids


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The attempts to connect to Redis."""
    made: list[object] = []
    connect = Connection._connect

    def counted(self: Connection) -> object:
        made.append(self)
        return connect(self)

    monkeypatch.setattr(Connection, "_connect", counted)
    return made


def test_an_absent_redis_is_tried_once_a_call_raises_nothing_and_logs_one_line(
    caplog: pytest.LogCaptureFixture, attempts: list[object]
) -> None:
    with messages.connect(f"redis://127.0.0.1:{free_port()}/0") as redis:
        for _ in range(100):
            assert not messages.publish_event(redis, "job_x", EVENT)
            assert not messages.publish_tick(redis, "job_x", {})
            assert not messages.bump_registry(redis)
            assert messages.waiting(redis) is None
    assert len(attempts) == 400
    assert [record.getMessage() for record in caplog.records] == [
        "Redis is unavailable: could not publish events"
    ]


def test_a_redis_that_comes_back_is_heard_again(own_redis: RedisServer) -> None:
    with messages.connect(own_redis.url) as redis:
        assert messages.publish_event(redis, "job_x", EVENT)
        own_redis.kill()
        assert not messages.publish_event(redis, "job_x", EVENT)
        own_redis.start()
        assert messages.publish_event(redis, "job_x", EVENT)


def test_sending_without_redis_fails_after_a_second_attempt(attempts: list[object]) -> None:
    app = Celery("sender", set_as_current=False)
    app.conf.update(messages.celery_settings(f"redis://127.0.0.1:{free_port()}/0"))
    with pytest.raises(Exception, match="Connection refused"):
        app.send_task(messages.TASK, ["job_x"], queue=queues.SLOW)
    assert len(attempts) <= 2


@pytest.mark.parametrize(
    ("given", "broker"),
    [
        ("redis://:secret@host:6379/1", "redis://:secret@host:6379/1"),
        ("rediss://host/1", "rediss://host/1"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        (
            "unix://:secret@/my%20run/redis.sock?db=3",
            "redis+socket://:secret@/my%20run/redis.sock?virtual_host=3",
        ),
    ],
)
def test_celery_gets_the_address_in_its_own_notation(given: str, broker: str) -> None:
    assert messages.broker_url(given) == broker


def test_celery_reaches_the_same_database_over_a_socket(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "my run 100%")
    server.start()
    address = server.url.replace("db=0", "db=3")
    try:
        with kombu.Connection(messages.broker_url(address)) as connection:
            connection.default_channel.client.set("seen", "yes")
        with messages.connect(address) as redis:
            assert redis.get("seen") == b"yes"
    finally:
        server.stop()
