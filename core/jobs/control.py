"""User control of a job: find it by a short id, cancel, pause, resume, retry, delete."""

from collections.abc import Set as AbstractSet
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Conflict
from tagsmith.core.jobs import job_stats, jobs
from tagsmith.core.jobs.job_stats import JobStats
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.store import blobs, clock, tables
from tagsmith.core.store.states import RETRYABLE, TERMINAL, State, Transition

_job = tables.job
#: What a whole id begins with.
_PREFIX = "job_"
#: Ambiguous ids listed in an error.
_SHOWN = 5


def resolve(conn: Connection, reference: str) -> str:
    """Return the id of a job, given that id or at least its last six characters. Raises Conflict if several match."""
    if reference.startswith(_PREFIX) or len(reference) < jobs.SUFFIX_LENGTH:
        return reference
    query = sa.select(_job.c.id).where(
        _job.c.suffix == reference[-jobs.SUFFIX_LENGTH :], _job.c.id.endswith(reference, autoescape=True)
    )
    found = list(conn.scalars(query.order_by(_job.c.id.desc()).limit(_SHOWN)))
    if len(found) > 1:
        raise Conflict(
            f"Several jobs end in {reference}: {', '.join(found)}. Give more characters.", code="ambiguous_id"
        )
    return found[0] if found else reference


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


def delete(conn: Connection, job_id: str) -> None:
    """Delete a job that has ended, with its events and its output. Versions and their evaluations stay."""
    query = sa.select(_job.c.state, _job.c.kind).where(_job.c.id == job_id).with_for_update()
    row = conn.execute(query).one_or_none()
    if row is None:
        raise jobs.missing(job_id)
    if State(row.state) not in TERMINAL:
        raise Conflict(
            f"Job {job_id} is {row.state}. Cancel it, or wait until it has ended.", code="illegal_transition"
        )
    conn.execute(_job.delete().where(_job.c.id == job_id))
    blobs.delete(conn, jobs.output_id(job_id))
    job_stats.add(conn, JobStats(row.kind, row.state, count=-1, ended=0, seconds=0.0))


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
