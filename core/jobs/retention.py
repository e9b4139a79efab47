"""Which jobs, and which parts of them, are older than their retention.

Ids of jobs grow with time, and what expired is deleted. So a search that begins with the smallest id, and ends with the
first job that is too young, reads only what it deletes and what active jobs still need.
"""

from collections.abc import Iterator
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.jobs import jobs
from tagsmith.core.store import blobs, tables
from tagsmith.core.store.states import State

_job = tables.job


def ended_before(conn: Connection, moment: datetime, limit: int) -> list[str]:
    """List jobs that ended before a moment, the oldest first."""
    # Without the states: SQLite would choose their index and read every job that ended.
    query = sa.select(_job.c.id).where(_job.c.finished_at < moment)
    return list(conn.scalars(query.order_by(_job.c.finished_at).limit(limit)))


def paused_before(conn: Connection, moment: datetime, limit: int) -> list[str]:
    """List paused jobs whose checkpoint is older than a moment."""
    checkpoint = tables.job_checkpoint
    query = (
        sa.select(_job.c.id)
        .join(checkpoint, checkpoint.c.job_id == _job.c.id)
        .where(_job.c.state == State.PAUSED.value, checkpoint.c.created_at < moment)
    )
    return list(conn.scalars(query.limit(limit)))


def delete_events(conn: Connection, moment: datetime, limit: int) -> int:
    """Delete the events of jobs that ended before a moment; return the number of jobs, at most `limit`."""
    count = 0
    for job_id in _ended(conn, tables.event.c.job_id, "", moment, limit):
        conn.execute(tables.event.delete().where(tables.event.c.job_id == job_id))
        count += 1
    return count


def delete_outputs(conn: Connection, moment: datetime, limit: int) -> int:
    """Delete the outputs of jobs that ended before a moment; return their number, at most `limit`."""
    count = 0
    for job_id in _ended(conn, tables.blob.c.id, jobs.output_id(""), moment, limit):
        blobs.delete(conn, jobs.output_id(job_id))
        count += 1
    return count


def _ended(
    conn: Connection, column: sa.Column[str], prefix: str, moment: datetime, limit: int
) -> Iterator[str]:
    """Yield the jobs whose id follows `prefix` in an indexed column, if they ended before a moment."""
    last, found = prefix, 0
    begins = column.startswith(prefix, autoescape=True)
    while found < limit:
        query = sa.select(column).where(column > last, begins).order_by(column).limit(1)
        key = conn.execute(query).scalar_one_or_none()
        if key is None:
            return
        last = key
        job = conn.execute(
            sa.select(_job.c.id, _job.c.created_at, _job.c.finished_at).where(
                _job.c.id == key.removeprefix(prefix)
            )
        ).one_or_none()
        if job is not None and job.created_at >= moment:
            return
        if job is not None and job.finished_at is not None and job.finished_at < moment:
            found += 1
            yield job.id
