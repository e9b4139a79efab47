"""What happened to a job, in order, for good."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.errors import NotFound
from core.store import clock, tables

# PostgreSQL's integer; a larger `after` names no event, and must not be an error of the driver.
MAX_SEQ = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it has a number."""

    type: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)
    level: str = "info"
    #: When it happened, if that was not just now: events of passes are written some at a time.
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `seq` counts from 1 in each job, without gaps."""

    seq: int
    type: str
    level: str
    at: datetime
    message: str
    data: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The one shape for SQL, Redis, JSON lists and SSE."""
        return dataclasses.asdict(self) | {"at": clock.rfc3339(self.at)}


def append(conn: Connection, job_id: str, drafts: Sequence[Draft]) -> list[Event]:
    """Number and store events.

    The numbers come from one UPDATE of the job row, so they are contiguous however many writers there are.
    A worker calls this only in a transaction in which it has shown that the lease is its own.
    """
    if not drafts:
        return []
    job = tables.job
    query = (
        job.update()
        .where(job.c.id == job_id)
        .values(last_seq=job.c.last_seq + len(drafts))
        .returning(job.c.last_seq)
    )
    last = conn.execute(query).scalar_one_or_none()
    if last is None:
        raise NotFound(f"there is no job {job_id}", code="job_not_found")
    return store(conn, job_id, last, drafts)


def store(conn: Connection, job_id: str, last_seq: int, drafts: Sequence[Draft]) -> list[Event]:
    """Store events whose numbers, ending with `last_seq`, an UPDATE of the job row has reserved already."""
    now = clock.now(conn)
    first = last_seq - len(drafts) + 1
    made = [
        Event(first + i, draft.type, draft.level, draft.at or now, draft.message, dict(draft.data))
        for i, draft in enumerate(drafts)
    ]
    conn.execute(tables.event.insert(), [dataclasses.asdict(event) | {"job_id": job_id} for event in made])
    return made


def after(conn: Connection, job_id: str, seq: int, limit: int) -> list[Event]:
    """List the events after number `seq`, oldest first."""
    event = tables.event
    query = (
        sa.select(event.c.seq, event.c.type, event.c.level, event.c.at, event.c.message, event.c.data)
        .where(event.c.job_id == job_id, event.c.seq > max(0, min(seq, MAX_SEQ)))
        .order_by(event.c.seq)
        .limit(limit)
    )
    return [Event(**row._asdict()) for row in conn.execute(query)]


def newest(conn: Connection, job_id: str, kind: str) -> Event | None:
    """Give the newest event of a type."""
    event = tables.event
    query = (
        sa.select(event.c.seq, event.c.type, event.c.level, event.c.at, event.c.message, event.c.data)
        .where(event.c.job_id == job_id, event.c.type == kind)
        .order_by(event.c.seq.desc())
        .limit(1)
    )
    row = conn.execute(query).one_or_none()
    return None if row is None else Event(**row._asdict())
