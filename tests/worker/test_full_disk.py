"""A job whose result finds no room waits for it, on a disk that is really full."""

import errno
import logging
import os
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from tagsmith.core.jobs import control, events, jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.kinds import train
from tagsmith.core.jobs.resources import WAITING_FOR_ROOM, JobResources, when_there_is_room
from tagsmith.core.jobs.runner_interface import JobRun, ResultOnly, Waiting
from tagsmith.core.service import messages
from tagsmith.core.store import blobs, lease_clock, migrate
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import State
from tagsmith.worker import reaper, run
from tagsmith.worker.context import Context, Runner
from tagsmith.worker.watchdog import Watchdog
from tests.full_disk import fill, make_room, run_on_small_disk
from tests.services import wait_until
from tests.worker import processes
from tests.worker.counting import Counted

#: What the job has made.
MODEL_BYTES = 2_000_000


@dataclass(frozen=True)
class Published:
    """The outcome of a job that finds the disk of the database full."""

    def store(self, conn: Connection) -> dict[str, Any]:
        return {"sha256": blobs.write(conn, "blb_model", [os.urandom(MODEL_BYTES)]).sha256}


@contextmanager
def connected(url: str, redis_url: str, folder: Path, runner: Any) -> Iterator[Context]:
    """A worker in this process."""
    context = Context(
        settings=processes.settings(url, redis_url, folder),
        db=Database(url),
        redis=messages.connect(redis_url),
        worker_id="here",
        stop=threading.Event(),
        busy=threading.Event(),
        send=lambda _: True,
        runners={"train": runner},
    )
    try:
        yield context
    finally:
        context.stop.set()
        context.redis.close()
        context.db.dispose()


@contextmanager
def working(folder: Path, redis_url: str, runner: Runner) -> Iterator[tuple[Context, str]]:
    """Run a job in a thread; yields its context and its id."""
    url = f"sqlite:///{folder}/tagsmith.db"
    migrate.upgrade(url)
    with connected(url, redis_url, folder, runner) as context:
        with context.db.write() as conn:
            job_id = jobs.create(conn, kind="train", spec={"max_seconds": 1.0}, model="m").id
        thread = threading.Thread(target=run.run_job, args=(context, job_id), daemon=True)
        thread.start()
        yield context, job_id
        thread.join(60)
        assert not thread.is_alive()


def job_of(context: Context, job_id: str) -> JobRow:
    with context.db.read() as conn:
        return jobs.get(conn, job_id)


def said(context: Context, job_id: str) -> list[str]:
    with context.db.read() as conn:
        return [each.message for each in events.after(conn, job_id, 0, 100)]


def database_full(folder: Path, redis_url: str) -> None:
    """The lease expires meanwhile, and other workers look for expired leases."""

    def runner(_: JobResources) -> JobRun:
        yield Counted(1, 1)
        fill(folder)
        return Published()

    with working(folder, redis_url, runner) as (context, job_id):

        def expired() -> bool:
            with context.db.read() as conn:
                return job_id in leases.expired(conn, lease_clock.now(conn))

        wait_until(expired, "the lease to expire")
        failed = threading.Event()
        logging.getLogger(reaper.__name__).addFilter(lambda record: bool(failed.set()) or bool(record))
        reaper.start(context)
        assert failed.wait(60), "a reaper did not try to take the job"
        assert job_of(context, job_id).state is State.RUNNING
        make_room(folder)
        wait_until(lambda: job_of(context, job_id).state is not State.RUNNING, "the end of the job")
        job = job_of(context, job_id)
        assert (job.state, job.attempt, job.error) == (State.SUCCEEDED, 1, None)
        assert said(context, job_id).count(WAITING_FOR_ROOM) == 1
        with context.db.read() as conn:
            assert sum(map(len, blobs.read(conn, "blb_model"))) == MODEL_BYTES


def writing(folder: Path) -> Runner:
    """A runner that writes its result to a disk that is full."""

    def runner(resources: JobResources) -> JobRun:
        yield Counted(1, 1)
        path = resources.scratch / "model"
        fill(folder)
        yield from when_there_is_room(lambda: path.write_bytes(os.urandom(MODEL_BYTES)), path)
        return ResultOnly({"size": path.stat().st_size})

    return runner


def scratch_full(folder: Path, redis_url: str, elsewhere: str, ending: str) -> None:
    tempfile.tempdir = str(folder)
    with working(Path(elsewhere), redis_url, writing(folder)) as (context, job_id):
        wait_until(lambda: WAITING_FOR_ROOM in said(context, job_id), "the job to say that it waits")
        wait_until(
            lambda: (job_of(context, job_id).progress or {}).get("phase") == "waiting",
            "the progress to say that it waits",
        )
        # Longer than its time limit, which is for the work.
        wait_until(lambda: job_of(context, job_id).worked_seconds > 1.5, "the time to pass")
        if ending == "cancelled":
            with context.db.write() as conn:
                control.cancel(conn, job_id)
        else:
            make_room(folder)
        wait_until(lambda: job_of(context, job_id).state is not State.RUNNING, "the end of the job")
    job = job_of(context, job_id)
    context.db.dispose()
    assert job.state.value == ending
    assert job.result == (None if ending == "cancelled" else {"size": MODEL_BYTES})


def scratch_full_at_once(folder: Path, redis_url: str, elsewhere: str) -> None:
    def runner(resources: JobResources) -> JobRun:
        fill(folder)
        yield None
        (resources.scratch / "input").write_bytes(bytes(MODEL_BYTES))
        return ResultOnly({})

    tempfile.tempdir = str(folder)
    with working(Path(elsewhere), redis_url, runner) as (context, job_id):
        wait_until(lambda: job_of(context, job_id).state is State.FAILED, "the job to fail")
    error = job_of(context, job_id).error
    context.db.dispose()
    assert error == {
        "code": "disk_full",
        "message": "The disk of the worker is full. Free some space, then try again.",
    }


def test_a_finished_job_keeps_its_result_until_the_database_has_room(redis_url: str, tmp_path: Path) -> None:
    run_on_small_disk(database_full, tmp_path / "disk", "8m", redis_url)


@pytest.mark.parametrize("ending", ["succeeded", "cancelled"])
def test_a_finished_job_keeps_its_result_until_there_is_room_for_its_file(
    ending: str, redis_url: str, tmp_path: Path
) -> None:
    run_on_small_disk(scratch_full, tmp_path / "disk", "4m", redis_url, str(tmp_path), ending)


def test_a_job_that_finds_no_room_for_its_inputs_fails_with_a_sentence(
    redis_url: str, tmp_path: Path
) -> None:
    run_on_small_disk(scratch_full_at_once, tmp_path / "disk", "4m", redis_url, str(tmp_path))


def test_the_file_of_a_trained_model_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def save(_model: object, path: Path) -> None:
        attempts.append(path)
        if len(attempts) == 1:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(train.file, "save", save)
    monkeypatch.setattr("tagsmith.core.jobs.resources.ROOM_RETRY_S", 0.01)
    spec = train.TrainSpec.model_validate(train.KIND.examples["train"].spec)
    trained: Any = SimpleNamespace(
        **dict.fromkeys(("model", "objective", "active_features", "train_seconds", "passes", "stop_reason")),
        metrics={"dev": {"score": "f1"}},
        curve=[],
        warnings=(),
    )
    trained.model = SimpleNamespace(labels=["B-NP", "O"])
    job: Any = SimpleNamespace(id="job_1", request_id=None)
    resources: Any = SimpleNamespace(scratch=tmp_path, job=job, registry=None)
    steps = train.NewModel.of(spec, trained, resources)
    assert next(steps) == Waiting(WAITING_FOR_ROOM)
    assert list(tmp_path.iterdir()) == []  # what was written of it makes room
    made = Finished(steps)
    assert set(made) <= {Waiting(WAITING_FOR_ROOM)}
    assert (made.value.path, len(attempts)) == (tmp_path / "model", 2)


class Finished:
    """Iterates over a generator and keeps its value."""

    def __init__(self, steps: Generator[Any, None, Any]) -> None:
        self._steps = steps
        self.value: Any = None

    def __iter__(self) -> Iterator[Any]:
        self.value = yield from self._steps


def test_workers_can_renew_their_leases_after_an_outage_before_a_reaper_takes_their_jobs(
    sqlite_url: str, redis_url: str, tmp_path: Path
) -> None:
    with connected(sqlite_url, redis_url, tmp_path, when_there_is_room) as context:
        with context.db.write() as conn:
            job_id = jobs.create(conn, kind="train", spec={}, model="m").id
            leases.claim(conn, job_id, "other", -1.0)
        grace, watchdog = reaper.Grace(context), Watchdog(context.busy)
        assert grace.is_over()
        grace.begin()
        reaper.sweep(context, watchdog, reap=grace.is_over())
        assert job_of(context, job_id).state is State.RUNNING
        wait_until(grace.is_over, "the end of the grace")
        reaper.sweep(context, watchdog, reap=grace.is_over())
        assert job_of(context, job_id).state is State.QUEUED
