"""A running service to break, on SQLite or on PostgreSQL, and what a drill may do to it."""

import contextlib
import itertools
import json
import os
import random
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import redis

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.jobs import jobs
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import State
from tests.drills import actions
from tests.drills.framework.clients import LONG_PASSES, LONG_SENTENCES, Clients
from tests.drills.framework.inside import SAME_IDENTITY, Inside
from tests.drills.framework.relay import Relay
from tests.drills.framework.tagging import INTERVAL_S, Tagging
from tests.services import POSTGRES_SOCKET, Databases, PostgresServer, RedisServer, free_port, wait_until

#: A worker that is lost is noticed in three seconds instead of thirty.
TIMES: dict[str, Any] = {
    "lease_seconds": 3.0,
    "heartbeat_seconds": 0.7,
    "reaper_seconds": 0.5,
    "checkpoint_seconds": 0.4,
    # Each worker takes every job.
    "quick_workers": 0,
}
#: Smaller seeds are those of data that was there before.
FIRST_NUMBER = 100
#: Workers and API processes end by force 15 s after the signal at the latest; as long again for a busy machine.
ORPHANS_END_S = 30.0
WORKERS = ("worker-1", "worker-2")
#: For `make test`: leases, the job under way and faults are shorter.
QUICK_TIMES = {"lease_seconds": 2.0, "heartbeat_seconds": 0.5}
QUICK_SHARE = 0.5
#: A fault happens at a random moment of this many seconds.
MOMENT_S = 1.5


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set variables that the processes started meanwhile inherit."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Scene:
    """One running service. Its data stays over all repetitions."""

    #: Whether every repetition needs a new one.
    fresh = False
    api_processes = 1
    workers = WORKERS
    #: The pass of the job under way after which a fault may happen.
    first_pass = 1

    def __init__(self, folder: Path, *, quick: bool = False) -> None:
        self.folder = folder
        self.times = TIMES | QUICK_TIMES if quick else TIMES
        self._share = QUICK_SHARE if quick else 1.0
        self.tag_interval_s = INTERVAL_S / self._share**2
        self.inside = Inside(folder)
        #: The same after a restart.
        self._port = free_port()
        #: Numbers that no two corpora or trainings share.
        self.numbers = itertools.count(FIRST_NUMBER)
        self.rng = random.Random(0)
        #: The clients of the present repetition.
        self.clients: Clients
        self.tagging: Tagging
        #: The job under way when the fault happens.
        self.job_id = ""
        self.over_at: float | None = None
        #: Jobs and versions of earlier repetitions, as `History.others`.
        self.known: set[str] = set()
        #: Name of the drill whose preparation it has.
        self.prepared_for = ""
        #: Whether a model serves.
        self.has_champion = False

    # -- the service --

    def start(self) -> None:
        """Start everything and wait until it serves."""
        self.database = Database(self._database_url())
        self.stack = BackgroundStack(Settings.from_env({}, self._settings()))
        self._up()

    def stop(self) -> None:
        """End everything."""
        self.stack.stop()
        self.database.dispose()

    def kill_and_start(self) -> None:
        """Kill the supervisor, and start the service again while its children may still be ending."""
        family = actions.family(self.stack)
        self.stack.kill()
        self.mark_over()
        self._up()
        wait_until(lambda: not actions.left(family), lambda: f"{actions.left(family)} to end", ORPHANS_END_S)

    def _up(self) -> None:
        with environment(**self.inside.environment):
            self.stack.start()

    @property
    def url(self) -> str:
        """Where clients call it."""
        return self.stack.url

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    def settle(self) -> None:
        """Wait until all processes run and no job does."""
        self.inside.disarm()
        for name in self.names:
            wait_until(lambda name=name: self._is_alive(name), f"{name} to run", 60)
        self.await_quiet()

    def begin(self, clients: Clients) -> str:
        """Start a job of some seconds, in the middle of which the fault happens; return its id."""
        submission = clients.train(clients.upload(LONG_SENTENCES), int(LONG_PASSES * self._share))
        assert submission.id is not None
        self.submission = submission
        return submission.id

    def await_quiet(self, deadline_s: float = 90.0) -> None:
        """Wait until no job waits or runs."""
        wait_until(self._is_quiet, lambda: f"the end of {self._active()}", deadline_s)

    def restore(self) -> None:
        """Undo what the preparation of a drill changed."""
        if self.inside.is_armed(SAME_IDENTITY):
            self.inside.arm(SAME_IDENTITY, "")
            self.restart(WORKERS)

    # -- its processes --

    @property
    def names(self) -> list[str]:
        """The children of the supervisor that always run."""
        return [*self.workers, *(f"api-{n + 1}" for n in range(self.api_processes))]

    def pid(self, name: str) -> int:
        """Return the process id of a child, when it runs."""
        wait_until(lambda: self._is_alive(name), f"{name} to run", 60)
        found = self._recorded(name)
        assert found is not None
        return found

    def machine_of(self, pid: int) -> list[int]:
        """The processes that share a clock with one, as far as the service can tell: with SQLite, all of them."""
        supervisor = psutil.Process(self.stack.pid)
        return [self.stack.pid, *(child.pid for child in supervisor.children(recursive=True))]

    def restart(self, names: Sequence[str]) -> None:
        """Kill children at once, and wait until others are there in their place."""
        pids = {name: self.pid(name) for name in names}
        for pid in pids.values():
            self.kill(pid, signal.SIGKILL)
        for name, pid in pids.items():
            wait_until(lambda name=name, pid=pid: self.pid(name) != pid, f"another {name}", 60)

    def kill(self, pid: int, signum: int) -> None:
        """Send a signal to a process of this service."""
        assert psutil.Process(self.stack.pid) in psutil.Process(pid).parents()
        os.kill(pid, signum)

    def holder(self) -> int:
        """Return the process id of the worker that runs the job under way, when one does."""
        found: list[int] = []

        def held() -> bool:
            owner = self.job().lease_owner
            if owner is not None:
                found.append(int(owner.split(":")[1]))
            return bool(found)

        wait_until(held, f"a worker to take {self.job_id}")
        return found[0]

    # -- the fault --

    def moment(self, most_s: float = MOMENT_S) -> None:
        """Wait for a random time."""
        time.sleep(self.rng.uniform(0, most_s * self._share))

    def pause(self, least_s: float, most_s: float) -> None:
        """Let a fault last for a random time."""
        time.sleep(self.duration_s(least_s, most_s))

    def duration_s(self, least_s: float, most_s: float) -> float:
        """How long a fault lasts: a random time."""
        return self.rng.uniform(least_s, most_s) * self._share

    def mark_over(self) -> None:
        """From now on the service can recover. If nobody says so, it is when the drill returns."""
        self.over_at = time.monotonic()

    # -- its data, past the service --

    def job(self, job_id: str | None = None) -> JobRow:
        """Read the job under way, or another one."""
        with self.database.read() as conn:
            return jobs.get(conn, job_id or self.job_id)

    @property
    def running_settings(self) -> Settings:
        """The settings of the processes of the service."""
        return self.stack.settings.replace(redis_url=self.stack.redis_url)

    def cached_models(self) -> list[Path]:
        """The model files that API processes have open."""
        return sorted((self.data_dir / "cache").rglob("*.model"))

    def kill_redis(self) -> None:
        """Kill Redis. The supervisor starts its own one again."""
        self.kill(self.pid("redis"), signal.SIGKILL)

    def restore_redis(self) -> None:
        """Start Redis again, if nobody else does."""

    def flush_redis(self) -> None:
        with redis.Redis.from_url(self.stack.redis_url) as client:
            client.flushall()

    def _settings(self) -> dict[str, Any]:
        return {
            **self.times,
            "port": self._port,
            "data_dir": self.data_dir,
            "database_url": self._database_url(),
            "workers": len(self.workers),
            "api_processes": self.api_processes,
        }

    def _database_url(self) -> str:
        return f"sqlite:///{self.data_dir / 'tagsmith.db'}"

    def _recorded(self, name: str) -> int | None:
        try:
            return int(json.loads((self.data_dir / "run" / f"{name}.pid").read_text())[0])
        except (OSError, ValueError, IndexError):
            return None

    def _is_alive(self, name: str) -> bool:
        pid = self._recorded(name)
        try:
            return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def _is_quiet(self) -> bool:
        try:
            return not self._active()
        except TagsmithError:
            return False

    def _active(self) -> list[str]:
        active = (State.QUEUED, State.RUNNING, State.PAUSING, State.CANCELLING)
        with self.database.read() as conn:
            rows = [row for state in active for row in jobs.page(conn, 100, state=state).data]
        return [f"{row.id} ({row.state.value}, attempt {row.attempt})" for row in rows]


class SqliteScene(Scene):
    """`tagsmith up` as it is by default, with two workers: SQLite, its own Redis, one API process."""


class PostgresScene(Scene):
    """Two API processes and two workers on PostgreSQL and Redis servers that can be taken away."""

    api_processes = 2

    def start(self) -> None:
        self._start_services()
        self.relay = self._relay()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.relay.close()
        self._stop_services()

    def _start_services(self) -> None:
        self.postgres = PostgresServer(durable=True)
        self.postgres.start()
        self.redis = RedisServer(self.folder / "redis")
        self.redis.start()
        self._given_url = Databases(self.postgres.url).create()

    def _stop_services(self) -> None:
        self.redis.stop()
        self.postgres.stop()

    def settle(self) -> None:
        self.relay.heal()
        super().settle()

    def machine_of(self, pid: int) -> list[int]:
        # Every process may be on a machine of its own.
        return [pid]

    def kill_redis(self) -> None:
        self.redis.kill()

    def restore_redis(self) -> None:
        self.redis.start()

    def _relay(self) -> Relay:
        """The way of the service to its database."""
        folder = self.folder / "pg"
        folder.mkdir()
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(folder / POSTGRES_SOCKET))
        listening.listen(64)

        return Relay(listening, self._connect_database)

    def _connect_database(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self.postgres.socket_path))
        except OSError:
            server.close()
            raise
        return server

    def _database_url(self) -> str:
        return self._given_url

    def _settings(self) -> dict[str, Any]:
        given = self._given_url.partition("?")[0]
        return {
            **super()._settings(),
            "database_url": f"{given}?host={self.folder / 'pg'}",
            "redis_url": self.redis.url,
        }
