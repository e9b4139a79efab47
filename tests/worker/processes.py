"""Starting real workers, and looking at what they did."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tagsmith.core.jobs import events, jobs
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.registry import models
from tagsmith.core.service import messages, queues
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import TERMINAL, State
from tagsmith.worker.celery_app import create_celery, sender
from tests.services import wait_until

ROOT = Path(__file__).parents[2]
#: Long: many workers may be starting at once, and only a test that fails waits for it.
DEADLINE_S = 90.0


def settings(database_url: str, redis_url: str, data_dir: Path) -> Settings:
    """Settings with times short enough to wait for."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        data_dir=data_dir,
        lease_seconds=1.5,
        heartbeat_seconds=0.4,
        reaper_seconds=0.2,
    )


class Worker:
    """One worker process."""

    def __init__(
        self,
        config: Settings,
        log: Path,
        module: str = "tests.worker.counting",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAGSMITH_")}
        with log.open("ab") as handle:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=ROOT,
                env={**inherited, **config.to_env(), **(environment or {})},
                stdout=handle,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._process.pid

    def kill(self) -> None:
        """End it without warning."""
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        return self._process.wait(DEADLINE_S)

    def log(self) -> str:
        return self._log.read_text()


class Stack:
    """A database and a broker with workers on them."""

    def __init__(self, config: Settings, folder: Path, deadline_s: float = DEADLINE_S) -> None:
        self.config = config
        self.db = Database(config.database_url)
        self._folder = folder
        self._deadline_s = deadline_s
        self._send = sender(create_celery(config))
        self._workers: list[Worker] = []

    def start(
        self, module: str = "tests.worker.counting", environment: Mapping[str, str] | None = None
    ) -> Worker:
        log = self._folder / f"worker-{len(self._workers)}.log"
        worker = Worker(self.config, log, module, environment)
        self._workers.append(worker)
        return worker

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()
        self.db.dispose()

    def create(self, model: str, queue: str = queues.SLOW, **spec: Any) -> str:
        """Store a job without telling anyone."""
        with self.db.write() as conn:
            return jobs.create(
                conn, kind="train", spec=spec, model=model, origin=jobs.Origin("req-1"), queue=queue
            ).id

    def submit(self, model: str, queue: str = queues.SLOW, **spec: Any) -> str:
        """Store a job and send its message, as the API does."""
        job_id = self.create(model, queue, **spec)
        self.send(job_id)
        return job_id

    def send(self, job_id: str) -> None:
        assert self._send(self.job(job_id))
        with self.db.write() as conn:
            jobs.mark_sent(conn, job_id)

    def job(self, job_id: str) -> JobRow:
        with self.db.read() as conn:
            return jobs.get(conn, job_id)

    def await_state(self, job_id: str, *states: State) -> JobRow:
        def reached() -> bool:
            state = self.job(job_id).state
            assert state in states or state not in TERMINAL, f"{job_id} has {state}, not become {states}"
            return state in states

        wait_until(reached, f"{job_id} to be {states}", self._deadline_s)
        return self.job(job_id)

    def await_pass(self, job_id: str, number: int) -> None:
        def reached() -> bool:
            progress = self.job(job_id).progress
            return progress is not None and progress["pass"] >= number

        wait_until(reached, f"{job_id} to reach pass {number}", self._deadline_s)

    def events(self, job_id: str) -> list[events.Event]:
        with self.db.read() as conn:
            found = events.after(conn, job_id, 0, 10_000)
        assert [event.seq for event in found] == list(range(1, len(found) + 1))
        return found

    def states(self, job_id: str) -> list[str]:
        return [event.data["state"] for event in self.events(job_id) if event.type == "state"]

    def versions(self, model: str) -> list[models.VersionRow]:
        with self.db.read() as conn:
            return models.versions(conn, model, 100).data

    def worker_of(self, job_id: str) -> Worker:
        owner = self.job(job_id).lease_owner
        assert owner is not None
        (found,) = [worker for worker in self._workers if f":{worker.pid}:" in owner]
        return found

    def stream(self, job_id: str) -> list[dict[bytes, bytes]]:
        """What followers of a job were told."""
        assert self.config.redis_url is not None
        with messages.connect(self.config.redis_url) as client:
            entries: Any = client.xrange(messages.stream_key(job_id))
        return [fields for _, fields in entries]
