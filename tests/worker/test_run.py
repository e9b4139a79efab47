"""One job in this process: how each end is stored, and what is said on the way."""

import dataclasses
import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagsmith.core.base.errors import NotFound, Unavailable
from tagsmith.core.jobs import control, events, jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.resources import JobResources
from tagsmith.core.jobs.runner_interface import JobRun
from tagsmith.core.registry import models
from tagsmith.core.service import messages, queues
from tagsmith.core.store import clock
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import State
from tagsmith.worker import reaper, run
from tagsmith.worker.context import Context
from tagsmith.worker.watchdog import EXIT_CODE, MAX_IDLE_S, Watchdog
from tests.services import wait_until
from tests.worker import processes
from tests.worker.counting import Counted, CountOutcome, count


@pytest.fixture
def context(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Context]:
    sent: list[str] = []
    made = Context(
        settings=processes.settings(database_url, redis_url, tmp_path),
        db=Database(database_url),
        redis=messages.connect(redis_url),
        worker_id="here",
        stop=threading.Event(),
        busy=threading.Event(),
        send=lambda job: sent.append(job.id) is None,
        runners={"train": count},
    )
    yield made
    made.redis.close()
    made.db.dispose()


def create(context: Context, model: str = "counter", kind: str = "train", **spec: Any) -> str:
    with context.db.write() as conn:
        return jobs.create(conn, kind=kind, spec=spec, model=model, origin=jobs.Origin("req-42")).id


def job_of(context: Context, job_id: str) -> JobRow:
    with context.db.read() as conn:
        return jobs.get(conn, job_id)


def events_of(context: Context, job_id: str) -> list[events.Event]:
    with context.db.read() as conn:
        return events.after(conn, job_id, 0, 10_000)


def test_an_error_of_the_user_fails_the_job_with_its_code_and_places(context: Context) -> None:
    job_id = create(context, passes=5, pass_s=0, fail="invalid")
    run.run_job(context, job_id)
    job = job_of(context, job_id)
    assert (job.state, job.result) == (State.FAILED, None)
    assert job.error == {
        "code": "bad_pass",
        "message": "pass 2 is no good",
        "errors": [{"reason": "bad label", "line": 7, "pointer": None, "type": None}],
    }
    assert [event.type for event in events_of(context, job_id)] == ["state", "state", "pass", "pass", "state"]


def test_a_defect_fails_the_job_without_showing_its_inside(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = create(context, passes=5, pass_s=0, fail="defect")
    with caplog.at_level(logging.INFO):
        run.run_job(context, job_id)
    job = job_of(context, job_id)
    assert job.state is State.FAILED
    assert job.error == {
        "code": "internal_error",
        "message": "The job failed with an internal error. The log of the worker has the details.",
    }
    assert "secret" not in json.dumps([event.as_dict() for event in events_of(context, job_id)])
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "secret inner detail" in caplog.text
    assert (record.__dict__["job_id"], record.__dict__["request_id"]) == (job_id, "req-42")


def test_a_kind_nobody_runs_fails_the_job(context: Context) -> None:
    job_id = create(context, kind="levitate")
    run.run_job(context, job_id)
    error = job_of(context, job_id).error
    assert error is not None
    assert error["code"] == "unknown_kind"


def test_a_message_about_a_job_that_ended_or_never_was_does_nothing(context: Context) -> None:
    job_id = create(context, passes=1, pass_s=0)
    run.run_job(context, job_id)
    before = job_of(context, job_id)
    run.run_job(context, job_id)
    run.run_job(context, "job_never")
    assert job_of(context, job_id) == before


def test_events_of_quick_passes_are_written_a_few_times_a_second_and_none_is_lost(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = 0
    append = events.append

    def counted(*arguments: Any) -> Any:
        nonlocal writes
        writes += 1
        return append(*arguments)

    monkeypatch.setattr(events, "append", counted)
    job_id = create(context, passes=200, pass_s=0.005)
    started_at = time.monotonic()
    run.run_job(context, job_id)
    seconds = time.monotonic() - started_at
    found = [event for event in events_of(context, job_id) if event.type == "pass"]
    assert [event.data["pass"] for event in found] == list(range(1, 201))
    assert [event.at for event in found] == sorted(event.at for event in found)
    assert len({event.at for event in found}) == 200
    assert 2 <= writes <= 2 + seconds / 0.25


def test_ticks_go_to_redis_only_and_at_most_five_a_second(context: Context) -> None:
    job_id = create(context, passes=1, pass_s=1.5, slices=150)
    began = time.monotonic()
    run.run_job(context, job_id)
    seconds = time.monotonic() - began
    entries: Any = context.redis.xrange(messages.stream_key(job_id))
    ticks = [json.loads(fields[b"tick"]) for _, fields in entries if b"tick" in fields]
    assert 3 <= len(ticks) <= 5 * seconds + 1
    assert ticks[0] == {"pass": 1, "passes": 1, "fraction": 1.0}
    assert [event.type for event in events_of(context, job_id)] == ["state", "state", "pass", "state"]


def test_a_zombie_publishes_nothing_and_stops(context: Context) -> None:
    """The lease passes to another while the runner works; the runner never hears of it before its end."""

    def work(resources: JobResources) -> JobRun:
        with context.db.write() as conn:
            leases.reap(conn, clock.now(conn).replace(year=2100))
            assert leases.claim(conn, resources.job.id, "heir", 60) is not None
        yield None
        return CountOutcome(resources.job)

    zombie = dataclasses.replace(context, runners={"train": work})
    job_id = create(context, model=f"zombie-{context.db.dialect}")
    run.run_job(zombie, job_id)
    job = job_of(context, job_id)
    assert (job.state, job.lease_owner) == (State.RUNNING, "heir")
    with context.db.read() as conn, pytest.raises(NotFound):
        models.get(conn, f"zombie-{context.db.dialect}")
    with context.db.write() as conn:
        leases.succeed(conn, job_id, "heir", {})


def test_a_zombie_hears_of_its_loss_and_its_passes_are_not_recorded(context: Context) -> None:
    def work(resources: JobResources) -> JobRun:
        yield Counted(1, 1000)
        with context.db.write() as conn:
            leases.reap(conn, clock.now(conn).replace(year=2100))
            assert leases.claim(conn, resources.job.id, "heir", 60) is not None
        for number in range(2, 1000):
            time.sleep(0.01)
            yield Counted(number, 1000)
        raise AssertionError("never told to stop")

    zombie = dataclasses.replace(context, runners={"train": work})
    job_id = create(context)
    run.run_job(zombie, job_id)
    passes = [event.data["pass"] for event in events_of(context, job_id) if event.type == "pass"]
    assert passes == [1]
    with context.db.write() as conn:
        leases.succeed(conn, job_id, "heir", {})


def test_a_database_away_at_the_end_is_waited_for(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PERSIST_PAUSE_S", 0.05)
    failures = iter(range(3))

    @dataclasses.dataclass(frozen=True)
    class Unlucky(CountOutcome):
        def store(self, conn: Any) -> dict[str, Any]:
            stored = super().store(conn)
            if next(failures, None) is not None:
                raise Unavailable("the database cannot be reached")
            return stored

    def work(resources: JobResources) -> JobRun:
        yield Counted(1, 1)
        return Unlucky(resources.job)

    model = f"unlucky-{context.db.dialect}"
    job_id = create(context, model=model)
    run.run_job(dataclasses.replace(context, runners={"train": work}), job_id)
    assert job_of(context, job_id).result == {"version": 1}
    assert [event.type for event in events_of(context, job_id)] == ["state", "state", "pass", "state"]
    with context.db.read() as conn:
        assert [version.version for version in models.versions(conn, model, 10).data] == [1]


def test_the_folder_of_a_job_is_gone_after_it_whatever_happened(context: Context) -> None:
    folders: list[Path] = []

    def work(resources: JobResources) -> JobRun:
        folders.append(resources.scratch)
        (resources.scratch / "model").write_bytes(b"x" * 1000)
        yield from count(resources)
        return CountOutcome(resources.job)

    for fail in (None, "defect"):
        job_id = create(context, passes=2, pass_s=0, fail=fail)
        run.run_job(dataclasses.replace(context, runners={"train": work}), job_id)
    assert len(folders) == 2
    assert not any(folder.exists() for folder in folders)


def test_closing_reaches_the_runner_when_a_job_is_cancelled(context: Context) -> None:
    closed = threading.Event()

    def work(resources: JobResources) -> JobRun:
        try:
            while True:
                time.sleep(0.01)
                yield None
        finally:
            closed.set()

    job_id = create(context)
    thread = threading.Thread(
        target=run.run_job, args=(dataclasses.replace(context, runners={"train": work}), job_id)
    )
    thread.start()
    wait_until(lambda: job_of(context, job_id).state is State.RUNNING, "the job to run")
    with context.db.write() as conn:
        control.cancel(conn, job_id)
    thread.join(60)
    assert closed.is_set()
    assert job_of(context, job_id).state is State.CANCELLED


def test_a_sweep_sends_each_forgotten_job_once(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "RESEND_AFTER_S", 0.0)
    sent: list[str] = []
    context = dataclasses.replace(context, send=lambda job: sent.append(job.id) is None)
    forgotten, queued = create(context), create(context)
    context.redis.rpush(queues.SLOW, json.dumps({"headers": {"argsrepr": f"['{queued}']"}}))
    ended: list[int] = []
    watchdog = Watchdog(context.busy, ended.append)
    reaper.sweep(context, watchdog)
    assert sent == [forgotten]
    assert job_of(context, forgotten).sent_at is not None
    assert job_of(context, queued).sent_at is None
    context.redis.delete(queues.SLOW)
    with context.db.write() as conn:
        control.cancel(conn, forgotten)
        control.cancel(conn, queued)
    assert ended == []


def test_a_sweep_without_a_broker_marks_nothing_as_sent(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "RESEND_AFTER_S", 0.0)
    job_id = create(context)
    reaper.sweep(dataclasses.replace(context, send=lambda _: False), Watchdog(context.busy))
    assert job_of(context, job_id).sent_at is None
    with context.db.write() as conn:
        control.cancel(conn, job_id)


def test_the_watchdog_ends_only_a_worker_that_is_idle_while_messages_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    busy, ended = threading.Event(), []
    watchdog = Watchdog(busy, ended.append)

    def look_for(seconds: float, *, messages_wait: bool) -> None:
        nonlocal now
        watchdog.check(messages_wait=messages_wait)
        now += seconds
        watchdog.check(messages_wait=messages_wait)

    look_for(MAX_IDLE_S * 2, messages_wait=False)
    busy.set()
    look_for(MAX_IDLE_S * 2, messages_wait=True)
    busy.clear()
    look_for(MAX_IDLE_S - 1, messages_wait=True)
    watchdog.check(messages_wait=False)
    look_for(MAX_IDLE_S - 1, messages_wait=True)
    assert ended == []
    look_for(2, messages_wait=True)
    assert ended == [EXIT_CODE]
