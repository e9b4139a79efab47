"""Two API processes and two workers on PostgreSQL: those who watch a job get each event once, whatever is restarted."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings
from tests import services
from tests.drills import actions
from tests.services import wait_until

WATCHERS = 6


class Watcher:
    """A client in a thread that keeps the numbers of the events it receives."""

    def __init__(self, url: str, job_id: str) -> None:
        self.seqs: list[int] = []
        self._thread = threading.Thread(target=self._follow, args=(url, job_id), daemon=True)
        self._thread.start()

    def finished(self) -> list[int]:
        self._thread.join(90)
        assert not self._thread.is_alive(), f"the stream did not end after {self.seqs[-5:]}"
        return self.seqs

    def _follow(self, url: str, job_id: str) -> None:
        with Client(url, retries=0) as client:
            for event in client.follow(job_id):
                if event.seq is not None:
                    self.seqs.append(event.seq)


@pytest.fixture
def large(
    postgres_databases: services.Databases, own_redis: services.RedisServer, tmp_path: Path
) -> Iterator[BackgroundStack]:
    database_url = postgres_databases.create()
    given = {
        "port": 0,
        "data_dir": tmp_path / "data",
        "database_url": database_url,
        "redis_url": own_redis.url,
    }
    settings = Settings.from_env({}, {**given, "api_processes": 2, "workers": 2, "reaper_seconds": 0.5})
    with BackgroundStack(settings) as stack:
        yield stack
    postgres_databases.drop(database_url)


def restart(stack: BackgroundStack, name: str, sent: signal.Signals) -> None:
    """End a child, and wait until another is there in its place."""
    pid = actions.child_pid(stack, name)
    os.kill(pid, sent)
    wait_until(lambda: actions.child_pid(stack, name) != pid, f"another {name}", 30)


def test_each_event_comes_once_across_restarts_of_api_processes_and_of_redis(
    large: BackgroundStack, own_redis: services.RedisServer
) -> None:
    with Client(large.url, retries=0) as client:
        # The supervisor, two API processes, each with one that reads files, and two workers. It is ready when one API
        # process is; the others follow.
        services.wait_until(lambda: len(actions.family(large)) == 7, "seven processes")
        job_id = actions.start_long_job(client)
        watchers = [Watcher(large.url, job_id) for _ in range(WATCHERS)]
        for watcher in watchers:
            wait_until(lambda watcher=watcher: len(watcher.seqs) > 3, "the first events")
        with redis.Redis.from_url(own_redis.url) as broker:
            readers = [each for each in broker.client_list() if each["cmd"] in ("xread", "xrevrange")]
        assert 1 <= len(readers) <= 2, "one reader a process, not one a client"

        restart(large, "api-1", signal.SIGTERM)
        own_redis.kill()
        restart(large, "api-2", signal.SIGKILL)
        own_redis.start()
        own_redis.flush()
        late = Watcher(large.url, job_id)

    # A new connection: the old one may have been to a process that is gone.
    with Client(large.url, retries=0) as client:
        told = [watcher.finished() for watcher in (*watchers, late)]
        job = client.job(job_id)
        assert (job.state, job.attempt) == ("succeeded", 1)
        listed = [event.seq for event in client.events(job_id)]
        assert listed == list(range(1, len(listed) + 1))
        assert all(seqs == listed for seqs in told)
        # By pages, as those do who poll.
        half = len(listed) // 2
        assert [event.seq for event in client.events(job_id, after=half)] == listed[half:]
        with redis.Redis.from_url(own_redis.url) as broker:
            assert broker.exists(messages.stream_key(job_id)), "the worker found Redis again"
