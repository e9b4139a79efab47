"""What a user may ask of a job under way: to end, to stand still, to go on."""

from collections.abc import Set as AbstractSet
from typing import Any

from sqlalchemy.engine import Connection

from core.store import clock, jobs, tables
from core.store.jobs import JobRow
from core.store.states import State, Transition

_job = tables.job
#: What can be tried again: what ended without a result.
RETRYABLE = frozenset({State.FAILED, State.CANCELLED})


def cancel(conn: Connection, job_id: str) -> JobRow:
    """Ask for a stop: at once when no worker has it, else through its worker. Asking again changes nothing."""
    finished_at = jobs.at_when({State.QUEUED, State.PAUSED}, clock.now(conn))
    values = {"cancel_requested": True, "finished_at": finished_at}
    return _ask(conn, Transition.CANCEL, job_id, values, {State.CANCELLING, State.CANCELLED})


def pause(conn: Connection, job_id: str) -> JobRow:
    """Ask a job to stand still: at once when queued; when running, its worker first stores a checkpoint.

    Asking again changes nothing.
    """
    return _ask(conn, Transition.PAUSE, job_id, {}, {State.PAUSING, State.PAUSED})


def resume(conn: Connection, job_id: str) -> JobRow:
    """Queue a job that stands still. It will go on from its checkpoint."""
    values = {"queued_at": clock.now(conn), "sent_at": None}
    return _ask(conn, Transition.RESUME, job_id, values, frozenset())


def retryable(conn: Connection, job_id: str) -> JobRow:
    """Give a job that ended without a result, of which another can be made."""
    job = jobs.get(conn, job_id)
    if job.state not in RETRYABLE:
        raise jobs.illegal("retry", job)
    return job


def _ask(
    conn: Connection, transition: Transition, job_id: str, values: dict[str, Any], done: AbstractSet[State]
) -> JobRow:
    moved = jobs.move(conn, transition, _job.c.id == job_id, values)
    if moved is not None:
        return moved
    job = jobs.get(conn, job_id)
    if job.state in done:
        return job
    raise jobs.illegal(transition.value, job)
