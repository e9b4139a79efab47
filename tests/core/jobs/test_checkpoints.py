import pytest
import sqlalchemy as sa

from tagsmith.core.jobs import checkpoints, control, events, jobs, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.store import blobs, clock, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import State
from tests.core.store.samples import LATER, LEASE_S, add_running


def save(db: Database, job: JobRow, number: int, data: bytes, owner: str = "w1") -> str:
    """What a worker does at the end of a pass."""
    with db.write() as conn:
        blob = blobs.write(conn, new_id("blb"), [data])
        if leases.heartbeat(conn, job.id, owner, LEASE_S).lost:
            raise leases.LeaseLost("lost")
        checkpoints.replace(conn, job.id, number, blob.id)
    return blob.id


def blobs_in(db: Database) -> int:
    with db.read() as conn:
        chunks, whole = (
            int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
            for table in (tables.blob_chunk, tables.blob)
        )
    assert chunks == whole
    return whole


def end(db: Database, job: JobRow, owner: str) -> None:
    with db.write() as conn:
        leases.fail(conn, job.id, owner, {"code": "x", "message": "x"})


def test_a_checkpoint_comes_back_and_the_next_one_takes_its_place_and_its_bytes(db: Database) -> None:
    job, before = add_running(db), blobs_in(db)
    with db.read() as conn:
        assert checkpoints.find(conn, job.id) is None
    first = save(db, job, 3, b"three")
    second = save(db, job, 7, b"seven")
    with db.read() as conn:
        found = checkpoints.find(conn, job.id)
        assert found is not None
        assert (found.pass_number, found.blob_id) == (7, second)
        assert b"".join(blobs.read(conn, second)) == b"seven"
    assert first != second
    assert blobs_in(db) == before + 1
    end(db, job, "w1")


def test_a_worker_that_lost_its_lease_replaces_nothing_and_leaves_no_bytes(db: Database) -> None:
    job = add_running(db)
    kept, before = save(db, job, 3, b"three"), blobs_in(db)
    with db.write() as conn:
        leases.reap(conn, clock.now(conn) + LATER)
        assert leases.claim(conn, job.id, "heir", LEASE_S) is not None
    with pytest.raises(leases.LeaseLost):
        save(db, job, 4, b"four")
    with db.read() as conn:
        found = checkpoints.find(conn, job.id)
    assert found is not None
    assert (found.pass_number, found.blob_id) == (3, kept)
    assert blobs_in(db) == before
    end(db, job, "heir")


@pytest.mark.parametrize("end", ["succeed", "fail", "cancel", "give up"])
def test_the_end_of_a_job_removes_its_checkpoint_and_a_requeue_keeps_it(db: Database, end: str) -> None:
    before = blobs_in(db)
    job = add_running(db)
    save(db, job, 3, b"three")
    with db.write() as conn:
        leases.requeue(conn, job.id, "w1")
        assert checkpoints.find(conn, job.id) is not None
        assert leases.claim(conn, job.id, "w2", LEASE_S) is not None
        if end == "succeed":
            leases.succeed(conn, job.id, "w2", {"curve": [1, 2], "version": 3})
        elif end == "fail":
            leases.fail(conn, job.id, "w2", {"code": "x", "message": "x"})
        elif end == "cancel":
            control.cancel(conn, job.id)
            leases.cancelled(conn, job.id, "w2")
        else:
            leases.reap(conn, clock.now(conn) + LATER, max_losses=1)
        assert jobs.get(conn, job.id).ended
        assert checkpoints.find(conn, job.id) is None
    assert blobs_in(db) == before


def test_a_job_that_goes_on_between_losses_of_its_worker_never_fails_for_them(db: Database) -> None:
    job, owner = add_running(db), "w1"
    for number in range(1, 8):
        save(db, job, number, b"more", owner)
        with db.write() as conn:
            (reaped,) = leases.reap(conn, clock.now(conn) + LATER)
            assert reaped.state is State.QUEUED
            owner = f"w{number + 1}"
            assert leases.claim(conn, job.id, owner, LEASE_S) is not None
    # Without a checkpoint in between, the second loss in a row is the last.
    with db.write() as conn:
        (reaped,) = leases.reap(conn, clock.now(conn) + LATER)
    assert reaped.state is State.FAILED


def test_a_queued_job_that_is_cancelled_loses_its_checkpoint_too(db: Database) -> None:
    before = blobs_in(db)
    job = add_running(db)
    save(db, job, 3, b"three")
    with db.write() as conn:
        leases.requeue(conn, job.id, "w1")
        assert control.cancel(conn, job.id).state is State.CANCELLED
    assert blobs_in(db) == before


def test_the_curve_is_in_the_result_and_not_again_in_the_last_event(db: Database) -> None:
    job = add_running(db)
    with db.write() as conn:
        ended = leases.succeed(conn, job.id, "w1", {"version": 3, "curve": [{"pass": 1}]})
        last = events.newest(conn, job.id, "state")
        assert events.newest(conn, job.id, "pass") is None
    assert ended.result == {"version": 3, "curve": [{"pass": 1}]}
    assert last is not None
    assert last.data["result"] == {"version": 3}
