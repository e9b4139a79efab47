"""What users ask of jobs, and what becomes of it when workers are lost meanwhile."""

import pytest

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.jobs import checkpoints, control, events, jobs, leases
from tagsmith.core.jobs.leases import Signals
from tagsmith.core.store import blobs, clock, corpora, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import State
from tests.core.store.samples import LATER, LEASE_S, add_corpus, add_job, add_running


def test_a_queued_job_is_paused_at_once_and_no_worker_gets_it(db: Database) -> None:
    job = add_job(db)
    with db.write() as conn:
        paused = control.pause(conn, job.id)
        assert control.pause(conn, job.id) == paused
        assert leases.claim(conn, job.id, "w1", LEASE_S) is None
        assert job.id not in {each.id for each in jobs.unsent(conn, clock.now(conn) + LATER)}
    assert (paused.state, paused.finished_at) == (State.PAUSED, None)
    with db.write() as conn:
        resumed = control.resume(conn, job.id)
        assert (resumed.state, resumed.sent_at) == (State.QUEUED, None)
        assert resumed.queued_at >= job.queued_at
        assert leases.claim(conn, job.id, "w1", LEASE_S) is not None


def test_a_running_job_is_paused_by_its_worker_and_keeps_progress_and_checkpoint(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        leases.heartbeat(conn, job.id, "w1", LEASE_S, {"pass": 4})
        assert control.pause(conn, job.id).state is State.PAUSING
        assert leases.signals(conn, job.id, "w1") == Signals(cancel=False, lost=False, pause=True)
        checkpoints.replace(conn, job.id, 4, blobs.write(conn, new_id("blb"), [b"state"]).id)
        paused = leases.suspended(conn, job.id, "w1")
        assert (paused.state, paused.lease_owner, paused.progress) == (State.PAUSED, None, {"pass": 4})
        found = checkpoints.find(conn, job.id)
        assert found is not None
        assert found.pass_number == 4
        assert leases.signals(conn, job.id, "w1").lost
    with db.write() as conn:
        control.cancel(conn, job.id)
        assert checkpoints.find(conn, job.id) is None


def test_a_cancel_overtakes_a_pause(db: Database) -> None:
    job, held = add_running(db), add_running(db)
    with db.write() as conn:
        control.pause(conn, job.id)
        assert control.cancel(conn, job.id).state is State.CANCELLING
        assert leases.signals(conn, job.id, "w1") == Signals(cancel=True, lost=False)
        ended = leases.suspended(conn, job.id, "w1")
        assert (ended.state, ended.finished_at is not None) == (State.CANCELLED, True)
        control.pause(conn, held.id)
        leases.suspended(conn, held.id, "w1")
        ended = control.cancel(conn, held.id)
        assert (ended.state, ended.finished_at is not None) == (State.CANCELLED, True)


@pytest.mark.parametrize(("max_losses", "state"), [(1, State.FAILED), (2, State.PAUSED)])
def test_a_job_being_paused_when_its_worker_dies_is_paused_while_it_has_chances(
    db: Database, max_losses: int, state: State
) -> None:
    job = add_running(db)
    with db.write() as conn:
        control.pause(conn, job.id)
        leases.reap(conn, clock.now(conn) + LATER, max_losses)
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
            leases.claim(conn, job.id, "w1", LEASE_S)
        if state is State.SUCCEEDED:
            leases.succeed(conn, job.id, "w1", {})
    with (
        db.read() as conn,
        pytest.raises(Conflict, match=f"Cannot retry job {job.id}, because it is {state.value}"),
    ):
        control.retryable(conn, job.id)


def test_the_first_event_of_a_retry_names_the_job_it_repeats(db: Database) -> None:
    with db.write() as conn:
        job = jobs.create(conn, kind="train", spec={}, origin=jobs.Origin(retry_of="job_before"))
        leases.claim(conn, job.id, "w1", LEASE_S)
        leases.requeue(conn, job.id, "w1")
        first, _, third = events.after(conn, job.id, 0, 10)
    assert first.data["retry_of"] == "job_before"
    assert "job_before" in first.message
    assert (third.message, third.data) == ("queued", {"state": "queued", "attempt": 1})


def test_a_job_is_found_by_the_last_six_characters_of_its_id_unless_two_end_alike(db: Database) -> None:
    job, other = add_job(db), add_job(db)
    alike = f"job_{'z' * 20}{job.id[-6:]}"
    with db.write() as conn:
        assert control.resolve(conn, job.id[-6:]) == control.resolve(conn, job.id) == job.id
        assert control.resolve(conn, other.id[-9:]) == other.id
        for unknown in ("", "zzzzz", "zzzzzz", f"_{job.id[-6:]}", f"%{job.id[-5:]}", job.id[-5:]):
            assert control.resolve(conn, unknown) == unknown
        conn.execute(tables.event.delete().where(tables.event.c.job_id == other.id))
        conn.execute(
            tables.job.update().where(tables.job.c.id == other.id).values(id=alike, suffix=alike[-6:])
        )
        with pytest.raises(Conflict, match=f"{alike}, {job.id}") as caught:
            control.resolve(conn, job.id[-6:])
        assert control.resolve(conn, job.id[-12:]) == job.id
    assert caught.value.code == "ambiguous_id"


def test_a_job_is_deleted_with_its_events_and_output_once_it_has_ended(db: Database) -> None:
    job = add_running(db)
    with pytest.raises(Conflict, match="is running") as caught, db.write() as conn:
        control.delete(conn, job.id)
    assert caught.value.code == "illegal_transition"
    with db.write() as conn:
        blobs.write(conn, jobs.output_id(job.id), [b"output"])
        leases.succeed(conn, job.id, "w1", {})
    with db.write() as conn:
        control.delete(conn, job.id)
    with db.read() as conn:
        assert events.after(conn, job.id, 0, 10) == []
        for act in (jobs.get, control.retryable):
            with pytest.raises(NotFound):
                act(conn, job.id)
        with pytest.raises(NotFound):
            blobs.get(conn, jobs.output_id(job.id))
    with db.write() as conn, pytest.raises(NotFound):
        control.delete(conn, job.id)


def test_a_worker_that_still_computes_a_deleted_job_has_lost_it(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        control.cancel(conn, job.id)
        leases.cancelled(conn, job.id, "w1")
        control.delete(conn, job.id)
        assert leases.heartbeat(conn, job.id, "w1", LEASE_S).lost
        assert leases.signals(conn, job.id, "w1").lost
        for end in (leases.succeed, leases.fail):
            with pytest.raises(leases.LeaseLost):
                end(conn, job.id, "w1", {"code": "x", "message": "y"})


def test_a_job_that_succeeded_is_shown_as_complete(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        leases.heartbeat(conn, job.id, "w1", LEASE_S, {"pass": 4, "fraction": 0.4})
        done = leases.succeed(conn, job.id, "w1", {}, {"pass": 9, "fraction": 0.9, "eta_seconds": 3.0})
    assert done.progress == {"pass": 9, "fraction": 1.0, "eta_seconds": 0.0}
