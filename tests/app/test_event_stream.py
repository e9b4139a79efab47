"""Event streams against a real Redis and both databases. The worker's part is played with the store's functions."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import redis

from tagsmith.app.jobs import stream
from tagsmith.client import Client
from tagsmith.core.jobs import events, jobs, leases
from tagsmith.core.jobs.events import Draft
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.wire import JobEvent
from tests.app import samples
from tests.app.servers import ThreadServer
from tests.services import RedisServer, wait_until

ACCEPT = {"Accept": "text/event-stream"}


class Worker:
    """Does to a job what a worker does, step by step."""

    def __init__(self, database: Database, redis_url: str, job_id: str) -> None:
        self.database, self.job_id = database, job_id
        self.redis = redis.Redis.from_url(redis_url)

    def begin(self) -> None:
        with self.database.write() as conn:
            leases.claim(conn, self.job_id, "w", 60)
        self._publish_last()

    def step(self, number: int, *, publish: bool = True) -> None:
        draft = Draft("pass", f"pass {number}", {"pass": number})
        with self.database.write() as conn:
            made = events.append(conn, self.job_id, [draft])
        if publish:
            messages.publish_event(self.redis, self.job_id, made[0].as_dict())

    def tick(self, fraction: float) -> None:
        messages.publish_tick(self.redis, self.job_id, {"fraction": fraction})

    def end(self, *, publish: bool = True) -> None:
        with self.database.write() as conn:
            leases.succeed(conn, self.job_id, "w", {"version": 1})
        if publish:
            self._publish_last()

    def close(self) -> None:
        self.redis.close()

    def _publish_last(self) -> None:
        with self.database.read() as conn:
            last = jobs.get(conn, self.job_id).last_seq
            event = events.after(conn, self.job_id, last - 1, 1)[0]
        messages.publish_event(self.redis, self.job_id, event.as_dict())


class Watcher:
    """A client in a thread that keeps all events it receives."""

    def __init__(self, url: str, job_id: str, after: int = 0) -> None:
        self.events: list[JobEvent] = []
        self.error: Exception | None = None
        self._url, self._job_id, self._after = url, job_id, after
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def seqs(self) -> list[int]:
        return [event.seq for event in self.events if event.seq is not None]

    @property
    def ticks(self) -> list[Any]:
        return [event.data["fraction"] for event in self.events if event.type == "progress"]

    def wait_for(self, seq: int) -> None:
        wait_until(
            lambda: seq in self.seqs or self.error is not None, lambda: f"event {seq}, got {self.seqs}"
        )

    def finished(self) -> list[int]:
        self._thread.join(60)
        assert not self._thread.is_alive(), f"the stream did not end after {self.seqs}"
        assert self.error is None
        return self.seqs

    def _follow(self) -> None:
        try:
            with Client(self._url, retries=0) as client:
                for event in client.follow(self._job_id, after=self._after):
                    self.events.append(event)
        except Exception as error:  # noqa: BLE001  # shown by the test that waits
            self.error = error


@pytest.fixture
def worker(client: Client, database: Database, redis_url: str) -> Iterator[Worker]:
    corpus = client.upload(samples.TEXT)
    job = client.train(samples.spec(corpus.id))
    made = Worker(database, redis_url, job.id)
    yield made
    made.close()


@contextmanager
def raw_stream(url: str, job_id: str, **headers: str) -> Iterator[Iterator[str]]:
    with httpx.stream(
        "GET", f"{url}/jobs/{job_id}/events", headers={**ACCEPT, **headers}, timeout=20
    ) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        yield response.iter_lines()


def test_a_finished_job_is_replayed_whole_and_the_stream_ends(server: ThreadServer, worker: Worker) -> None:
    worker.begin()
    for number in range(1, 4):
        worker.step(number)
    worker.end()
    worker.redis.delete(messages.stream_key(worker.job_id))  # Redis forgot; SQL did not
    with raw_stream(server.url, worker.job_id) as lines:
        frames = "\n".join(lines).split("\n\n")
    assert frames[0] == "retry: 3000"
    fields = [dict(line.split(": ", 1) for line in frame.splitlines()) for frame in frames[1:] if frame]
    assert [(field["id"], field["event"]) for field in fields] == [
        ("1", "state"), ("2", "state"), ("3", "pass"), ("4", "pass"), ("5", "pass"), ("6", "state"),
    ]  # fmt: skip
    listed = httpx.get(f"{server.url}/jobs/{worker.job_id}/events").json()["data"]
    assert [json.loads(field["data"]) for field in fields] == listed


@pytest.mark.parametrize("how", ["header", "query"])
def test_a_stream_resumes_after_the_last_event_seen(server: ThreadServer, worker: Worker, how: str) -> None:
    worker.begin()
    worker.step(1)
    worker.end()
    url = f"{server.url}/jobs/{worker.job_id}/events"
    given = {"headers": {**ACCEPT, "Last-Event-ID": "2"}} if how == "header" else {"params": {"after": 2}}
    response = httpx.get(url, **{"headers": ACCEPT, **given})  # type: ignore[arg-type]
    assert [line for line in response.text.splitlines() if line.startswith("id:")] == ["id: 3", "id: 4"]


def test_a_client_that_has_seen_the_end_is_told_not_to_come_back(
    server: ThreadServer, worker: Worker
) -> None:
    worker.begin()
    worker.end()
    url = f"{server.url}/jobs/{worker.job_id}/events"
    response = httpx.get(url, headers={**ACCEPT, "Last-Event-ID": "3"})
    assert (response.status_code, response.content) == (204, b"")


@pytest.fixture
def pushed(server: ThreadServer, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Watcher:
    """A watcher that hears only what Redis pushes: the next look into SQL is an hour away."""
    monkeypatch.setattr(stream, "IDLE_POLL_S", 3600.0)
    watcher = Watcher(server.url, worker.job_id)
    watcher.wait_for(1)
    wait_until(lambda: server.app.state.runtime.live.connected, "the reader to attach")
    # The wait that began before the reader was attached is a short one. After a tick, it is over.
    wait_until(lambda: worker.tick(0.1) or 0.1 in watcher.ticks, "the first tick")
    return watcher


def test_live_events_and_ticks_are_pushed_and_arrive_once(worker: Worker, pushed: Watcher) -> None:
    worker.begin()
    pushed.wait_for(2)
    for number in range(3, 8):
        worker.step(number)
        pushed.wait_for(number)
    worker.tick(0.5)
    wait_until(lambda: 0.5 in pushed.ticks, "the tick")
    worker.end()
    assert pushed.finished() == list(range(1, 9))
    assert all(event.seq is None for event in pushed.events if event.type == "progress")


def test_many_watchers_of_one_job_all_get_everything(server: ThreadServer, worker: Worker) -> None:
    watchers = [Watcher(server.url, worker.job_id) for _ in range(10)]
    for watcher in watchers:
        watcher.wait_for(1)
    worker.begin()
    for number in range(50):
        worker.step(number)
    worker.end()
    for watcher in watchers:
        assert watcher.finished() == list(range(1, 54))


def test_one_reader_serves_all_watchers(
    server: ThreadServer, worker: Worker, client: Client, database: Database, redis_url: str
) -> None:
    worker.begin()
    watchers = [Watcher(server.url, worker.job_id) for _ in range(12)]
    for watcher in watchers:
        watcher.wait_for(2)
    wait_until(lambda: server.app.state.runtime.live.connected, "the reader to attach")
    readers = [entry for entry in worker.redis.client_list() if entry["cmd"] in ("xread", "xrevrange")]
    assert len(readers) == 1
    worker.end()
    for watcher in watchers:
        watcher.finished()


def test_an_event_that_redis_never_saw_is_filled_in_from_sql(worker: Worker, pushed: Watcher) -> None:
    worker.begin()
    pushed.wait_for(2)
    worker.step(3, publish=False)
    worker.step(4, publish=False)
    worker.step(5)
    pushed.wait_for(5)
    worker.end()
    assert pushed.finished() == list(range(1, 7))


def test_an_end_that_redis_never_saw_is_found_in_sql(
    server: ThreadServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "IDLE_POLL_S", 0.5)
    watcher = Watcher(server.url, worker.job_id)
    worker.begin()
    watcher.wait_for(2)
    worker.end(publish=False)
    assert watcher.finished() == [1, 2, 3]


def test_a_cancel_is_pushed_to_those_who_watch(worker: Worker, pushed: Watcher, client: Client) -> None:
    client.cancel(worker.job_id)
    assert pushed.finished() == [1, 2]
    assert pushed.events[-1].data["state"] == "cancelled"


def test_the_progress_of_the_row_is_shown_to_a_late_comer(
    server: ThreadServer, worker: Worker, database: Database
) -> None:
    worker.begin()
    with database.write() as conn:
        leases.heartbeat(conn, worker.job_id, "w", 60, {"fraction": 0.25})
    watcher = Watcher(server.url, worker.job_id)
    wait_until(lambda: watcher.ticks == [0.25], "the progress")
    worker.end()
    watcher.finished()


def test_a_quiet_stream_is_pinged(
    server: ThreadServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PING_S", 0.2)
    monkeypatch.setattr(stream, "IDLE_POLL_S", 0.2)
    monkeypatch.setattr(stream, "POLL_S", 0.2)
    with raw_stream(server.url, worker.job_id) as lines:
        assert next(line for line in lines if line.startswith(":")) == ": ping"


def test_a_slow_watcher_loses_its_queue_but_no_event(
    server: ThreadServer, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagsmith.app.jobs.live.QUEUE_LENGTH", 4)
    watcher = Watcher(server.url, worker.job_id)
    watcher.wait_for(1)
    worker.begin()
    for number in range(300):
        worker.step(number)
    worker.end()
    assert watcher.finished() == list(range(1, 304))


class TestWithoutRedis:
    """Streams while Redis comes and goes."""

    @pytest.fixture
    def own(
        self, sqlite_url: str, own_redis: RedisServer, tmp_path: Any
    ) -> Iterator[tuple[ThreadServer, Worker]]:
        settings = Settings(data_dir=tmp_path, database_url=sqlite_url, redis_url=own_redis.url)
        database = Database(sqlite_url)
        with ThreadServer(settings) as server, Client(server.url, retries=0) as client:
            job = client.train(samples.spec(client.upload(samples.TEXT).id))
            worker = Worker(database, own_redis.url, job.id)
            yield server, worker
            worker.close()
        database.dispose()

    def test_a_stream_goes_on_through_an_outage_without_gap_or_repeat(
        self, own: tuple[ThreadServer, Worker], own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The loss of Redis itself must wake the stream.
        monkeypatch.setattr(stream, "IDLE_POLL_S", 3600.0)
        server, worker = own
        watcher = Watcher(server.url, worker.job_id)
        worker.begin()
        worker.step(3)
        watcher.wait_for(3)
        own_redis.kill()
        worker.step(4)
        watcher.wait_for(4)
        worker.step(5)
        watcher.wait_for(5)
        own_redis.start()
        wait_until(lambda: server.app.state.runtime.live.connected, "the reader to come back")
        worker.step(6)
        watcher.wait_for(6)
        worker.tick(0.75)
        wait_until(lambda: 0.75 in watcher.ticks, "a tick after the outage")
        worker.end()
        assert watcher.finished() == list(range(1, 8))

    def test_a_server_told_to_stop_ends_its_streams_and_a_client_resumes_at_the_next(
        self, own: tuple[ThreadServer, Worker]
    ) -> None:
        server, worker = own
        with raw_stream(server.url, worker.job_id) as lines:
            assert next(lines) == "retry: 3000"
            server.stop()
            # The response ends as it should: a stream that is cut off raises here.
            seen = [line for line in lines if line.startswith("id:")]
        assert seen == ["id: 1"]
        with ThreadServer(server.settings) as successor:
            watcher = Watcher(successor.url, worker.job_id, after=1)
            worker.begin()
            worker.end()
            assert watcher.finished() == [2, 3]
