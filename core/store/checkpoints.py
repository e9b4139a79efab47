"""Checkpoints: where a job can go on from when its worker is gone. At most one a job, none once it has ended.

A worker that calls `replace` or `delete` has shown in the same transaction that the lease is its own, by
`jobs.heartbeat`. That also locks the job's row, so that a checkpoint and the end of its job cannot pass each other.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.store import blobs, clock, tables

_checkpoint = tables.job_checkpoint


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """The checkpoint of a job, after so many passes."""

    job_id: str
    blob_id: str
    pass_number: int
    created_at: datetime


def find(conn: Connection, job_id: str) -> CheckpointRow | None:
    """Give the checkpoint of a job, if it has one."""
    row = conn.execute(sa.select(_checkpoint).where(_checkpoint.c.job_id == job_id)).one_or_none()
    return None if row is None else CheckpointRow(**row._asdict())


def replace(conn: Connection, job_id: str, pass_number: int, blob_id: str) -> None:
    """Make a blob, written in this transaction, the checkpoint of a job in place of the earlier one."""
    delete(conn, job_id)
    values = {"job_id": job_id, "blob_id": blob_id, "pass_number": pass_number, "created_at": clock.now(conn)}
    conn.execute(_checkpoint.insert().values(**values))


def delete(conn: Connection, job_id: str) -> None:
    """Remove the checkpoint of a job and its bytes, if there is one."""
    query = _checkpoint.delete().where(_checkpoint.c.job_id == job_id).returning(_checkpoint.c.blob_id)
    blob_id = conn.execute(query).scalar_one_or_none()
    if blob_id is not None:
        blobs.delete(conn, blob_id)
