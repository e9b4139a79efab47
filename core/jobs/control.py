"""User control of a job: cancel, pause, resume, retry."""

from collections.abc import Set as AbstractSet
from typing import Any

from sqlalchemy.engine import Connection

from tagsmith.core.jobs import jobs
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.store import clock, tables
from tagsmith.core.store.states import RETRYABLE, State, Transition

_job = tables.job


def cancel(conn: Connection, job_id: str) -> JobRow:
    """Cancel a job. It ends at once if no worker has it, otherwise when its worker stops. Repeating has no effect."""
    finished_at = jobs.at_when({State.QUEUED, State.PAUSED}, clock.now(conn))
    values = {"cancel_requested": True, "finished_at": finished_at}
    return _ask(conn, Transition.CANCEL, job_id, values, {State.CANCELLING, State.CANCELLED})


def pause(conn: Connection, job_id: str) -> JobRow:
    """Pause a job. A queued job pauses at once; the worker of a running job stores a checkpoint first.

    Repeating has no effect.
    """
    return _ask(conn, Transition.PAUSE, job_id, {}, {State.PAUSING, State.PAUSED})


def resume(conn: Connection, job_id: str) -> JobRow:
    """Queue a paused job. It resumes from its checkpoint."""
    values = {"queued_at": clock.now(conn), "sent_at": None}
    return _ask(conn, Transition.RESUME, job_id, values, frozenset())


def retryable(conn: Connection, job_id: str) -> JobRow:
    """Return a job that can be retried: it ended without a result. Raises Conflict in any other state."""
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
