import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.jobs import control, events, jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.leases import LeaseLost, Signals
from tagsmith.core.registry import models
from tagsmith.core.store import clock, lease_clock
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import TERMINAL, TRANSITIONS, State, Transition
from tests.core.store.samples import LATER, LEASE_S, add_job, add_running, new_version


def states_of(db: Database, job_id: str) -> list[str]:
    with db.read() as conn:
        found = events.after(conn, job_id, 0, 1000)
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    return [event.data["state"] for event in found if event.type == "state"]


def reap_later(db: Database, max_losses: int = 2) -> list[JobRow]:
    with db.write() as conn:
        return leases.reap(conn, clock.now(conn) + LATER, max_losses)


def test_a_new_job_is_queued_with_its_first_event(db: Database) -> None:
    job = add_job(db)
    with db.read() as conn:
        assert jobs.get(conn, job.id) == job
        (event,) = events.after(conn, job.id, 0, 10)
    assert job.state is State.QUEUED
    assert (job.attempt, job.last_seq, job.request_id, job.sent_at) == (0, 1, "req-1", None)
    assert job.created_at == job.queued_at
    assert (event.seq, event.type, event.message, event.data) == (
        1, "state", "queued", {"state": "queued", "attempt": 0},
    )  # fmt: skip


def test_an_unknown_job_is_not_found(db: Database) -> None:
    with db.read() as conn, pytest.raises(NotFound) as caught:
        jobs.get(conn, "job_none")
    assert caught.value.code == "job_not_found"


def test_a_job_on_an_unknown_corpus_is_refused_and_not_stored(db: Database) -> None:
    with pytest.raises(NotFound) as caught:
        add_job(db, ["crp_none"], model="on-nothing")
    assert caught.value.code == "corpus_not_found"
    with db.read() as conn:
        assert jobs.page(conn, 10, model="on-nothing").data == []


def test_claim_takes_a_queued_job_once(db: Database) -> None:
    job = add_job(db)
    with db.write() as conn:
        before = lease_clock.now(conn)
        claimed = leases.claim(conn, job.id, "w1", LEASE_S)
        after = lease_clock.now(conn)
    with db.write() as conn:
        assert leases.claim(conn, job.id, "w2", LEASE_S) is None
    assert claimed is not None
    assert (claimed.state, claimed.attempt, claimed.lease_owner) == (State.RUNNING, 1, "w1")
    assert claimed.started_at is not None
    assert claimed.lease_until is not None
    assert before <= claimed.lease_until - timedelta(seconds=LEASE_S) <= after
    assert states_of(db, job.id) == ["queued", "running"]


def test_five_deliveries_of_a_message_at_once_give_one_claim(db: Database) -> None:
    for _ in range(10):
        job = add_job(db)
        start = threading.Barrier(5)

        def deliver(owner: str, job_id: str = job.id, start: threading.Barrier = start) -> JobRow | None:
            start.wait()
            with db.write() as conn:
                return leases.claim(conn, job_id, owner, LEASE_S)

        with ThreadPoolExecutor(5) as pool:
            claims = [claim for claim in pool.map(deliver, "abcde") if claim is not None]
        assert len(claims) == 1
        with db.read() as conn:
            assert jobs.get(conn, job.id) == claims[0]
        assert states_of(db, job.id) == ["queued", "running"]


def test_claim_takes_over_a_job_whose_lease_ran_out_unless_it_was_the_last_try(db: Database) -> None:
    job = add_running(db, "w1", lease_s=-1)
    with db.write() as conn:
        second = leases.claim(conn, job.id, "w2", -1)
    assert second is not None
    assert (second.lease_owner, second.attempt) == ("w2", 2)
    with db.write() as conn:
        assert leases.claim(conn, job.id, "w3", LEASE_S) is None
    reap_later(db)
    with db.read() as conn:
        assert jobs.get(conn, job.id).state is State.FAILED


def test_heartbeat_renews_stores_progress_and_brings_the_wish_to_cancel(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        assert leases.heartbeat(conn, job.id, "w1", 60, {"pass": 3, "objective": float("nan")}) == Signals(
            False, False
        )
    with db.read() as conn:
        beaten = jobs.get(conn, job.id)
        assert leases.signals(conn, job.id, "w1") == Signals(cancel=False, lost=False)
    assert beaten.progress == {"pass": 3, "objective": None}
    assert beaten.lease_until is not None
    assert job.lease_until is not None
    assert beaten.lease_until - job.lease_until > timedelta(seconds=25)
    with db.write() as conn:
        control.cancel(conn, job.id)
    with db.write() as conn:
        assert leases.heartbeat(conn, job.id, "w1", 60) == Signals(cancel=True, lost=False)
    with db.read() as conn:
        assert jobs.get(conn, job.id).progress == {"pass": 3, "objective": None}
        assert leases.signals(conn, job.id, "w1") == Signals(cancel=True, lost=False)
        assert leases.signals(conn, job.id, "someone else") == Signals(cancel=False, lost=True)


def test_success_and_failure_end_the_job_and_free_the_lease(db: Database) -> None:
    won, failed = add_running(db), add_running(db)
    with db.write() as conn:
        won = leases.succeed(conn, won.id, "w1", {"version": 4})
        failed = leases.fail(conn, failed.id, "w1", {"code": "invalid", "message": "no labels"})
    assert (won.state, won.result, won.error, won.lease_owner) == (
        State.SUCCEEDED,
        {"version": 4},
        None,
        None,
    )
    assert (failed.state, failed.result, failed.error) == (
        State.FAILED, None, {"code": "invalid", "message": "no labels"},
    )  # fmt: skip
    assert won.finished_at is not None
    assert failed.finished_at is not None
    with db.read() as conn:
        last = events.after(conn, failed.id, failed.last_seq - 1, 10)[-1]
    assert (last.level, last.message) == ("error", "failed: no labels")


def test_a_zombie_can_neither_publish_nor_end_nor_beat(db: Database) -> None:
    job = add_running(db, "zombie")
    reap_later(db)
    with db.write() as conn:
        assert leases.claim(conn, job.id, "heir", LEASE_S) is not None

    def publish(conn: Connection) -> None:
        version = models.publish(conn, "zombies", new_version(job.id), [b"stale model"])
        leases.succeed(conn, job.id, "zombie", {"version": version.version})

    with (
        pytest.raises(LeaseLost, match=f"lost the lease of {job.id}: it is running"),
        db.write() as conn,
    ):
        publish(conn)
    with db.read() as conn, pytest.raises(NotFound):
        models.get(conn, "zombies")
    for act in (
        lambda conn: leases.fail(conn, job.id, "zombie", {"code": "x", "message": "x"}),
        lambda conn: leases.cancelled(conn, job.id, "zombie"),
        lambda conn: leases.requeue(conn, job.id, "zombie"),
    ):
        with pytest.raises(LeaseLost), db.write() as conn:
            act(conn)
    with db.write() as conn:
        assert leases.heartbeat(conn, job.id, "zombie", 60, {"pass": 9}) == Signals(cancel=False, lost=True)
    with db.read() as conn:
        present = jobs.get(conn, job.id)
    assert (present.lease_owner, present.progress) == ("heir", None)
    assert states_of(db, job.id) == ["queued", "running", "queued", "running"]


def test_cancel_of_a_queued_job_ends_it_at_once_and_for_good(db: Database) -> None:
    job = add_job(db)
    with db.write() as conn:
        cancelled = control.cancel(conn, job.id)
    assert (cancelled.state, cancelled.cancel_requested) == (State.CANCELLED, True)
    assert cancelled.finished_at is not None
    with db.write() as conn:
        assert control.cancel(conn, job.id) == cancelled
        assert leases.claim(conn, job.id, "w1", LEASE_S) is None
    assert states_of(db, job.id) == ["queued", "cancelled"]


def test_cancel_of_a_running_job_goes_through_its_worker(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        asked = control.cancel(conn, job.id)
        again = control.cancel(conn, job.id)
    assert asked == again
    assert (asked.state, asked.lease_owner, asked.finished_at) == (State.CANCELLING, "w1", None)
    with db.write() as conn:
        ended = leases.cancelled(conn, job.id, "w1")
    assert (ended.state, ended.lease_owner) == (State.CANCELLED, None)
    assert states_of(db, job.id) == ["queued", "running", "cancelling", "cancelled"]


def test_a_cancel_that_comes_too_late_leaves_the_result(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        control.cancel(conn, job.id)
        assert leases.succeed(conn, job.id, "w1", {"version": 1}).state is State.SUCCEEDED


def test_a_worker_may_not_stop_a_job_nobody_cancelled(db: Database) -> None:
    job = add_running(db)
    with (
        pytest.raises(Conflict, match=f"Cannot stop job {job.id}, because it is running") as caught,
        db.write() as conn,
    ):
        leases.cancelled(conn, job.id, "w1")
    assert caught.value.code == "illegal_transition"


def test_requeue_gives_the_job_back_without_costing_a_chance(db: Database) -> None:
    job = add_running(db)
    for attempt in range(1, 6):
        with db.write() as conn:
            given_back = leases.requeue(conn, job.id, f"w{attempt}")
        assert (given_back.state, given_back.attempt, given_back.sent_at) == (State.QUEUED, attempt, None)
        with db.write() as conn:
            assert leases.claim(conn, job.id, f"w{attempt + 1}", LEASE_S) is not None
    (reaped,) = [each for each in reap_later(db) if each.id == job.id]
    assert reaped.state is State.QUEUED


def test_the_reaper_requeues_then_fails_with_worker_lost(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        assert leases.reap(conn, clock.now(conn)) == []
    for attempt in (1, 2):
        (reaped,) = reap_later(db, max_losses=3)
        assert (reaped.id, reaped.state, reaped.attempt) == (job.id, State.QUEUED, attempt)
        with db.write() as conn:
            assert leases.claim(conn, job.id, f"again-{attempt}", LEASE_S) is not None
    (failed,) = reap_later(db, max_losses=3)
    assert (failed.state, failed.lease_owner) == (State.FAILED, None)
    assert failed.error is not None
    assert failed.error["code"] == "worker_lost"
    assert failed.error["message"].startswith("The worker was lost 3 times in a row while it ran this job")
    assert failed.finished_at is not None
    assert reap_later(db) == []
    assert states_of(db, job.id) == ["queued", "running"] + ["queued", "running"] * 2 + ["failed"]


@pytest.mark.parametrize("max_losses", [1, 2])
def test_a_job_being_cancelled_when_its_worker_dies_is_cancelled(db: Database, max_losses: int) -> None:
    job = add_running(db)
    with db.write() as conn:
        control.cancel(conn, job.id)
    (reaped,) = reap_later(db, max_losses)
    assert (reaped.state, reaped.error) == (State.CANCELLED, None)
    assert reaped.finished_at is not None


def test_four_reapers_at_once_act_on_each_lost_lease_once(db: Database) -> None:
    lost = {add_running(db, lease_s=-1).id for _ in range(20)}
    start = threading.Barrier(4)

    def reap(_: int) -> list[JobRow]:
        start.wait()
        with db.write() as conn:
            return leases.reap(conn, clock.now(conn))

    with ThreadPoolExecutor(4) as pool:
        reaped = [job.id for job in itertools.chain.from_iterable(pool.map(reap, range(4)))]
    assert sorted(reaped) == sorted(lost)
    for job_id in lost:
        assert states_of(db, job_id) == ["queued", "running", "queued"]


def test_unsent_lists_queued_jobs_without_a_recent_message(db: Database) -> None:
    fresh, sent, running = add_job(db), add_job(db), add_running(db)
    with db.write() as conn:
        jobs.mark_sent(conn, sent.id)
        jobs.mark_sent(conn, running.id)

    def unsent(offset: timedelta) -> set[str]:
        with db.read() as conn:
            found = jobs.unsent(conn, clock.now(conn) + offset)
        return {job.id for job in found} & {fresh.id, sent.id, running.id}

    with db.read() as conn:
        row = jobs.get(conn, sent.id)
        assert jobs.get(conn, running.id).sent_at is None
    assert row.sent_at is not None
    assert unsent(-LATER) == set()
    assert unsent(LATER) == {fresh.id, sent.id}
    with db.read() as conn:
        before_sending = {job.id for job in jobs.unsent(conn, fresh.queued_at)}
    assert fresh.id in before_sending
    assert sent.id not in before_sending


def test_a_job_given_back_counts_as_unsent_again(db: Database) -> None:
    job = add_job(db)
    with db.write() as conn:
        jobs.mark_sent(conn, job.id)
        leases.claim(conn, job.id, "w1", LEASE_S)
        assert leases.requeue(conn, job.id, "w1").sent_at is None


def make_state(db: Database, state: State) -> JobRow:
    """Bring a new job of worker w1 into `state` by legal steps."""
    steps: dict[State, list[Callable[[Connection, str], object]]] = {
        State.QUEUED: [],
        State.RUNNING: [lambda c, j: leases.claim(c, j, "w1", LEASE_S)],
        State.CANCELLING: [lambda c, j: leases.claim(c, j, "w1", LEASE_S), control.cancel],
        State.PAUSING: [lambda c, j: leases.claim(c, j, "w1", LEASE_S), control.pause],
        State.PAUSED: [control.pause],
        State.SUCCEEDED: [
            lambda c, j: leases.claim(c, j, "w1", LEASE_S),
            lambda c, j: leases.succeed(c, j, "w1", {}),
        ],
        State.FAILED: [
            lambda c, j: leases.claim(c, j, "w1", LEASE_S),
            lambda c, j: leases.fail(c, j, "w1", {"code": "x", "message": "x"}),
        ],
        State.CANCELLED: [control.cancel],
    }
    job = add_job(db)
    with db.write() as conn:
        for step in steps[state]:
            step(conn, job.id)
        return jobs.get(conn, job.id)


ACTIONS: dict[Transition, Callable[[Connection, str], object]] = {
    Transition.SUCCEED: lambda c, j: leases.succeed(c, j, "w1", {}),
    Transition.FAIL: lambda c, j: leases.fail(c, j, "w1", {"code": "x", "message": "x"}),
    Transition.CANCEL: control.cancel,
    Transition.STOP: lambda c, j: leases.cancelled(c, j, "w1"),
    Transition.PAUSE: control.pause,
    Transition.SUSPEND: lambda c, j: leases.suspended(c, j, "w1"),
    Transition.RESUME: control.resume,
    Transition.REQUEUE: lambda c, j: leases.requeue(c, j, "w1"),
}
#: Actions that have no effect in these states.
ASKED_AGAIN = {
    Transition.CANCEL: {State.CANCELLING, State.CANCELLED},
    Transition.PAUSE: {State.PAUSING, State.PAUSED},
}


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("transition", list(ACTIONS))
def test_every_transition_does_what_the_table_says_or_is_a_conflict(
    db: Database, transition: Transition, state: State
) -> None:
    job = make_state(db, state)
    if state in TRANSITIONS[transition]:
        with db.write() as conn:
            moved = ACTIONS[transition](conn, job.id)
        assert isinstance(moved, JobRow)
        assert moved.state is TRANSITIONS[transition][state]
        assert moved.last_seq == job.last_seq + 1
    elif state in ASKED_AGAIN.get(transition, ()):
        with db.write() as conn:
            assert ACTIONS[transition](conn, job.id) == job
    else:
        with pytest.raises(Conflict, match=f"it is {state.value}"), db.write() as conn:
            ACTIONS[transition](conn, job.id)
        with db.read() as conn:
            assert jobs.get(conn, job.id) == job


def test_no_transition_leaves_a_terminal_state() -> None:
    for targets in TRANSITIONS.values():
        assert not TERMINAL & set(targets)


def test_lists_go_newest_first_by_keyset_with_filters(db: Database) -> None:
    made = [add_job(db, model="paged") for _ in range(7)]
    with db.write() as conn:
        control.cancel(conn, made[3].id)
    seen: list[str] = []
    cursor = None
    for size in (3, 3, 1):
        with db.read() as conn:
            page = jobs.page(conn, 3, cursor, model="paged")
        assert len(page.data) == size
        seen += [job.id for job in page.data]
        cursor = page.next_cursor
        add_job(db, model="paged")
    assert cursor is None
    assert seen == [job.id for job in reversed(made)]
    with db.read() as conn:
        cancelled = jobs.page(conn, 10, state=State.CANCELLED, model="paged")
    assert [job.id for job in cancelled.data] == [made[3].id]
