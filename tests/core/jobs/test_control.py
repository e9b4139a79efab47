"""What users ask of jobs, and what becomes of it when workers are lost meanwhile."""

import pytest

from tagsmith.core.base.errors import Conflict
from tagsmith.core.jobs import checkpoints, control, events, jobs
from tagsmith.core.jobs.jobs import Signals
from tagsmith.core.store import blobs, clock, corpora
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import State
from tests.core.store.samples import LATER, LEASE_S, add_corpus, add_job, add_running


def test_a_queued_job_is_paused_at_once_and_no_worker_gets_it(db: Database) -> None:
    job = add_job(db)
    with db.write() as conn:
        paused = control.pause(conn, job.id)
        assert control.pause(conn, job.id) == paused
        assert jobs.claim(conn, job.id, "w1", LEASE_S) is None
        assert job.id not in {each.id for each in jobs.unsent(conn, clock.now(conn) + LATER)}
    assert (paused.state, paused.finished_at) == (State.PAUSED, None)
    with db.write() as conn:
        resumed = control.resume(conn, job.id)
        assert (resumed.state, resumed.sent_at) == (State.QUEUED, None)
        assert resumed.queued_at >= job.queued_at
        assert jobs.claim(conn, job.id, "w1", LEASE_S) is not None


def test_a_running_job_is_paused_by_its_worker_and_keeps_progress_and_checkpoint(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        jobs.heartbeat(conn, job.id, "w1", LEASE_S, {"pass": 4})
        assert control.pause(conn, job.id).state is State.PAUSING
        assert jobs.signals(conn, job.id, "w1") == Signals(cancel=False, lost=False, pause=True)
        checkpoints.replace(conn, job.id, 4, blobs.write(conn, new_id("blb"), [b"state"]).id)
        paused = jobs.suspended(conn, job.id, "w1")
        assert (paused.state, paused.lease_owner, paused.progress) == (State.PAUSED, None, {"pass": 4})
        found = checkpoints.find(conn, job.id)
        assert found is not None
        assert found.pass_number == 4
        assert jobs.signals(conn, job.id, "w1").lost
    with db.write() as conn:
        control.cancel(conn, job.id)
        assert checkpoints.find(conn, job.id) is None


def test_a_cancel_overtakes_a_pause(db: Database) -> None:
    job, held = add_running(db), add_running(db)
    with db.write() as conn:
        control.pause(conn, job.id)
        assert control.cancel(conn, job.id).state is State.CANCELLING
        assert jobs.signals(conn, job.id, "w1") == Signals(cancel=True, lost=False)
        ended = jobs.suspended(conn, job.id, "w1")
        assert (ended.state, ended.finished_at is not None) == (State.CANCELLED, True)
        control.pause(conn, held.id)
        jobs.suspended(conn, held.id, "w1")
        ended = control.cancel(conn, held.id)
        assert (ended.state, ended.finished_at is not None) == (State.CANCELLED, True)


@pytest.mark.parametrize(("max_attempts", "state"), [(1, State.FAILED), (2, State.PAUSED)])
def test_a_job_being_paused_when_its_worker_dies_is_paused_while_it_has_chances(
    db: Database, max_attempts: int, state: State
) -> None:
    job = add_running(db)
    with db.write() as conn:
        control.pause(conn, job.id)
        jobs.reap(conn, clock.now(conn) + LATER, max_attempts)
        reaped = jobs.get(conn, job.id)
    assert (reaped.state, reaped.lease_owner) == (state, None)


def test_a_paused_job_keeps_its_corpus(db: Database) -> None:
    corpus = add_corpus(db)
    job = add_job(db, [corpus.id])
    with db.write() as conn:
        control.pause(conn, job.id)
    with pytest.raises(Conflict), db.write() as conn:
        corpora.delete(conn, corpus.id)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.PAUSED, State.SUCCEEDED])
def test_only_what_ended_without_a_result_can_be_tried_again(db: Database, state: State) -> None:
    job = add_job(db)
    with db.write() as conn:
        if state is State.PAUSED:
            control.pause(conn, job.id)
        elif state is not State.QUEUED:
            jobs.claim(conn, job.id, "w1", LEASE_S)
        if state is State.SUCCEEDED:
            jobs.succeed(conn, job.id, "w1", {})
    with (
        db.read() as conn,
        pytest.raises(Conflict, match=f"Cannot retry job {job.id}, because it is {state.value}"),
    ):
        control.retryable(conn, job.id)


def test_the_first_event_of_a_retry_names_the_job_it_repeats(db: Database) -> None:
    with db.write() as conn:
        job = jobs.create(conn, kind="train", spec={}, origin=jobs.Origin(retry_of="job_before"))
        jobs.claim(conn, job.id, "w1", LEASE_S)
        jobs.requeue(conn, job.id, "w1")
        first, _, third = events.after(conn, job.id, 0, 10)
    assert first.data["retry_of"] == "job_before"
    assert "job_before" in first.message
    assert (third.message, third.data) == ("queued", {"state": "queued", "attempt": 1})
