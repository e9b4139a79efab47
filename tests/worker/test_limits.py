"""What a job may take of a worker, and which jobs a worker takes."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.core.jobs import control
from tagsmith.core.service import queues
from tagsmith.core.store.states import State
from tagsmith.worker import reaper, run
from tagsmith.worker.watchdog import Watchdog
from tests.services import wait_until
from tests.worker.counting import count
from tests.worker.processes import Stack
from tests.worker.test_resume import context_of
from tests.worker.test_train import add_corpus, open_stack, post


@pytest.fixture
def training(sqlite_url: str, redis_url: str, tmp_path: Path) -> Iterator[Stack]:
    yield from open_stack(sqlite_url, redis_url, tmp_path)


def test_a_run_that_would_need_too_much_memory_is_refused_before_it_starts(training: Stack) -> None:
    training.config = training.config.replace(job_memory_bytes=100_000)
    job_id = post(training, add_corpus(training, 50, seed=1), "huge", trainer={"kind": "sgd-l1", "passes": 1})
    run.run_job(context_of(training), job_id)
    job = training.job(job_id)
    assert (job.state, job.worked_seconds > 0) == (State.FAILED, True)
    assert job.error is not None
    assert job.error["code"] == "too_large"
    assert "and jobs may use 0 MiB" in job.error["message"]
    assert not any(event.type == "pass" for event in training.events(job_id))


def test_a_job_fails_when_its_time_is_over_and_time_of_earlier_claims_counts(training: Stack) -> None:
    context = dataclasses.replace(context_of(training), runners={"train": count})
    job_id = training.create("late", passes=1000, pass_s=0.05, max_seconds=1.0)
    run.run_job(context, job_id)
    job = training.job(job_id)
    assert job.error == {
        "code": "out_of_time",
        "message": "The job did not finish within 1 s. Raise its max_seconds.",
    }
    made = [event for event in training.events(job_id) if event.type == "pass"]
    # Each pass takes at least its time, however slow the machine is.
    assert 1 <= len(made) <= 20
    assert job.worked_seconds > 0


@pytest.mark.parametrize(("own", "ends"), [("quick,slow", True), ("quick", False)])
def test_only_messages_of_its_own_queues_show_a_worker_that_it_is_deaf(
    training: Stack, own: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "RESEND_AFTER_S", 0.0)
    monkeypatch.setattr("tagsmith.worker.watchdog.MAX_IDLE_S", -1.0)
    training.config = training.config.replace(worker_queues=own)
    context = context_of(training)
    job_id = training.submit("waits", passes=1, pass_s=0)
    ended: list[int] = []
    reaper.sweep(context, Watchdog(context.busy, ended.append))
    assert bool(ended) is ends
    with training.db.write() as conn:
        control.cancel(conn, job_id)


def test_a_quick_job_goes_before_slow_ones_and_a_worker_kept_for_them_takes_no_other(
    breakable: Stack, tmp_path: Path
) -> None:
    slow = [breakable.submit(f"slow-{n}", passes=10, pass_s=0.1) for n in range(3)]
    quick = breakable.submit("quick", queues.QUICK, passes=1, pass_s=0)
    config = breakable.config
    breakable.config = config.replace(worker_queues=queues.QUICK)
    breakable.start()
    breakable.await_state(quick, State.SUCCEEDED)
    assert {breakable.job(job_id).state for job_id in slow} == {State.QUEUED}
    late = breakable.submit("late", queues.QUICK, passes=2, pass_s=0, hold_until=str(tmp_path / "gate"))
    breakable.await_pass(late, 1)
    # The kept worker is busy; the other one takes what is quick first.
    last = breakable.submit("last", queues.QUICK, passes=1, pass_s=0)
    breakable.config = config
    breakable.start()
    breakable.await_state(slow[0], State.RUNNING, State.SUCCEEDED)
    assert breakable.job(last).state is State.SUCCEEDED
    (tmp_path / "gate").touch()
    wait_until(lambda: breakable.job(late).ended, "the end")
