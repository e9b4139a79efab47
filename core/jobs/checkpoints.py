"""Checkpoints, from which a job resumes after its worker is lost. At most one per job; none after the job has ended.

Before a worker calls `replace` or `delete`, it proves with `leases.heartbeat`, in the same transaction, that it holds
the lease. The heartbeat also locks the row of the job, so storing a checkpoint and ending the job cannot overlap.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.store import blobs, clock, tables

_checkpoint = tables.job_checkpoint


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """The checkpoint of a job after `pass_number` passes."""

    job_id: str
    blob_id: str
    pass_number: int
    created_at: datetime


def find(conn: Connection, job_id: str) -> CheckpointRow | None:
    """Return the checkpoint of a job, or None."""
    row = conn.execute(sa.select(_checkpoint).where(_checkpoint.c.job_id == job_id)).one_or_none()
    return None if row is None else CheckpointRow(**row._asdict())


def replace(conn: Connection, job_id: str, pass_number: int, blob_id: str) -> None:
    """Replace the checkpoint of a job by a blob that was written in this transaction.

    It is progress: losses of workers before it no longer count.
    """
    delete(conn, job_id)
    conn.execute(tables.job.update().where(tables.job.c.id == job_id).values(losses=0))
    values = {"job_id": job_id, "blob_id": blob_id, "pass_number": pass_number, "created_at": clock.now(conn)}
    conn.execute(_checkpoint.insert().values(**values))


def delete(conn: Connection, job_id: str) -> None:
    """Delete the checkpoint of a job and its bytes, if it has one."""
    query = _checkpoint.delete().where(_checkpoint.c.job_id == job_id).returning(_checkpoint.c.blob_id)
    blob_id = conn.execute(query).scalar_one_or_none()
    if blob_id is not None:
        blobs.delete(conn, blob_id)
