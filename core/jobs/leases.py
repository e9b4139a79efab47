"""Leases: a worker holds a running job for a limited time, renews the lease while it works, and ends the job under it.

The lease guards every result: a worker that has lost it cannot change the job any more. Reapers take jobs back from
workers whose lease has expired.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import Conflict
from tagsmith.core.jobs import jobs
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.service.settings import MAX_LOSSES
from tagsmith.core.store import clock, lease_clock, tables
from tagsmith.core.store.states import HELD, State, Transition

_job = tables.job


@dataclass(frozen=True, slots=True)
class Signals:
    """The requests and the lease state that a worker checks while it runs a job."""

    #: A user requested a cancel.
    cancel: bool
    #: The worker no longer holds the lease: all its further results are ignored.
    lost: bool
    #: A user requested a pause.
    pause: bool = False


class LeaseLost(Conflict):
    """The caller no longer holds the lease: another worker has the job, or the job has ended."""

    default_code = "lease_lost"


def claim(
    conn: Connection, job_id: str, owner: str, lease_s: float, *, max_losses: int = MAX_LOSSES
) -> JobRow | None:
    """Claim a job. Return None when another worker has it or it has ended: the message was a duplicate.

    `owner` must be new for each claim. It identifies this claim among all others (fencing).
    """
    now = lease_clock.now(conn)
    abandoned = sa.and_(
        _job.c.state == State.RUNNING.value, _job.c.lease_until < now, _job.c.losses + 1 < max_losses
    )
    return jobs.move(
        conn,
        Transition.CLAIM,
        sa.and_(_job.c.id == job_id, sa.or_(_job.c.state == State.QUEUED.value, abandoned)),
        {
            "attempt": _job.c.attempt + 1,
            "losses": _job.c.losses + sa.case((_job.c.state == State.RUNNING.value, 1), else_=0),
            "lease_owner": owner,
            "lease_until": now + timedelta(seconds=lease_s),
            "started_at": clock.now(conn),
            "progress": None,
        },
    )


def heartbeat(
    conn: Connection,
    job_id: str,
    owner: str,
    lease_s: float,
    progress: Mapping[str, Any] | None = None,
    worked_s: float | None = None,
) -> Signals:
    """Renew the lease, store progress and time spent if given, and return the signals, in one statement."""
    values: dict[str, Any] = {"lease_until": lease_clock.now(conn) + timedelta(seconds=lease_s)}
    if progress is not None:
        values["progress"] = dict(progress)
    if worked_s is not None:
        values["worked_seconds"] = worked_s
    query = _job.update().where(_held_by(job_id, owner)).values(**values).returning(_job.c.state)
    return _signals(conn.execute(query).one_or_none())


def signals(conn: Connection, job_id: str, owner: str) -> Signals:
    """Return the signals without renewing the lease. This is a read, so it is cheap enough to poll."""
    query = sa.select(_job.c.state).where(_held_by(job_id, owner))
    return _signals(conn.execute(query).one_or_none())


def succeed(
    conn: Connection,
    job_id: str,
    owner: str,
    result: Mapping[str, Any],
    progress: Mapping[str, Any] | None = None,
) -> JobRow:
    """End a job with its result and its last progress. Publish in the same transaction: then the lease guards both."""
    done = {**(progress or {}), "fraction": 1.0, "eta_seconds": 0.0}
    values = {"result": dict(result), "progress": done, "finished_at": clock.now(conn)}
    return _by_owner(conn, Transition.SUCCEED, job_id, owner, values)


def fail(conn: Connection, job_id: str, owner: str, error: Mapping[str, Any]) -> JobRow:
    """End a job with an error, which has at least `code` and `message`."""
    values = {"error": dict(error), "finished_at": clock.now(conn)}
    return _by_owner(conn, Transition.FAIL, job_id, owner, values)


def cancelled(conn: Connection, job_id: str, owner: str) -> JobRow:
    """End a job as cancelled, after its worker saw the cancel request and stopped."""
    return _by_owner(conn, Transition.STOP, job_id, owner, {"finished_at": clock.now(conn)})


def suspended(conn: Connection, job_id: str, owner: str) -> JobRow:
    """Mark a job as paused, after its worker saw the pause request. Its state is in its checkpoint."""
    values = {"finished_at": jobs.at_when({State.CANCELLING}, clock.now(conn))}
    return _by_owner(conn, Transition.SUSPEND, job_id, owner, values)


def requeue(conn: Connection, job_id: str, owner: str) -> JobRow:
    """Return a job to the queue because its worker shuts down. This does not count as a lost worker."""
    return _by_owner(conn, Transition.REQUEUE, job_id, owner, _given_back(clock.now(conn)))


def expired(conn: Connection, now: datetime) -> list[str]:
    """List the jobs whose lease has expired at `now` of the lease clock. Reapers read this before they lock."""
    return list(conn.scalars(sa.select(_job.c.id).where(_is_expired(now)).order_by(_job.c.lease_until)))


def reap(conn: Connection, now: datetime, max_losses: int = MAX_LOSSES) -> list[JobRow]:
    """Queue the jobs of lost workers again, or fail them (`worker_lost`) after `max_losses` without a checkpoint.

    Any number of processes may call this at the same time. One of them handles each expired lease.
    """
    moved: list[JobRow] = []
    at = clock.now(conn)
    last_chance = _job.c.losses + 1 >= max_losses
    times = "once" if max_losses == 1 else f"{max_losses} times in a row"
    lost = {
        "code": "worker_lost",
        "message": f"The worker was lost {times} while it ran this job, without a checkpoint in between. The job may "
        "be what ends it. Look at the memory of the machine and at the log of the workers, then retry the job.",
    }
    for job_id in expired(conn, now):
        where = sa.and_(_job.c.id == job_id, _is_expired(now))
        given_back = _given_back(at) | {"losses": _job.c.losses + 1}
        ended = {"losses": _job.c.losses + 1, "error": _error_unless_cancelling(lost), "finished_at": at}
        job = jobs.move(conn, Transition.RECOVER, sa.and_(where, sa.not_(last_chance)), given_back)
        job = job or jobs.move(conn, Transition.GIVE_UP, sa.and_(where, last_chance), ended)
        if job is not None:
            moved.append(job)
    return moved


def _by_owner(
    conn: Connection, transition: Transition, job_id: str, owner: str, values: Mapping[str, Any]
) -> JobRow:
    moved = jobs.move(conn, transition, _held_by(job_id, owner), values)
    if moved is not None:
        return moved
    job = jobs.find(conn, job_id)
    if job is None:
        raise LeaseLost(f"This worker has lost the lease of {job_id}: the job was deleted.")
    if job.lease_owner == owner:
        raise jobs.illegal(transition.value, job)
    raise LeaseLost(f"This worker has lost the lease of {job_id}: it is {job.state.value}.")


def _held_by(job_id: str, owner: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        _job.c.id == job_id, _job.c.lease_owner == owner, _job.c.state.in_([state.value for state in HELD])
    )


def _is_expired(now: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(_job.c.state.in_([state.value for state in HELD]), _job.c.lease_until < now)


def _given_back(now: datetime) -> dict[str, Any]:
    """Return the fields of a job that is queued or paused again, or that has ended if it was being cancelled."""
    finished_at = jobs.at_when({State.CANCELLING}, now)
    return {"queued_at": now, "sent_at": None, "progress": None, "finished_at": finished_at}


def _error_unless_cancelling(error: Mapping[str, Any]) -> sa.ColumnElement[Any]:
    literal = sa.literal(dict(error), _job.c.error.type)
    return sa.case((_job.c.state == State.CANCELLING.value, sa.null()), else_=literal)


def _signals(row: Row[Any] | None) -> Signals:
    if row is None:
        return Signals(cancel=False, lost=True)
    return Signals(
        cancel=row.state == State.CANCELLING.value, lost=False, pause=row.state == State.PAUSING.value
    )
