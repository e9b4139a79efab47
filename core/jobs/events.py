"""The stored events of a job, in order."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import NotFound
from tagsmith.core.store import clock, tables

# The largest integer of PostgreSQL. A larger `after` matches no event and must not cause a driver error.
MAX_SEQ = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it has a number."""

    type: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)
    level: str = "info"
    #: When it happened, by `time.monotonic`; None means now. Events of passes are written in batches.
    noted_s: float | None = None

    def at(self, now: datetime) -> datetime:
        """Return when it happened, by the clock of `now`."""
        return now if self.noted_s is None else now - timedelta(seconds=time.monotonic() - self.noted_s)


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `seq` starts at 1 for each job and has no gaps."""

    seq: int
    type: str
    level: str
    at: datetime
    message: str
    data: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the shape that Redis, JSON lists and SSE share."""
        return dataclasses.asdict(self) | {"at": clock.rfc3339(self.at)}


def append(conn: Connection, job_id: str, drafts: Sequence[Draft]) -> list[Event]:
    """Number and store events.

    The numbers come from one UPDATE of the job row, so they are contiguous for any number of writers.
    A worker calls this only in a transaction in which it has proved that it holds the lease.
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
        raise NotFound(f"There is no job {job_id}.", code="job_not_found")
    return store(conn, job_id, last, drafts)


def store(conn: Connection, job_id: str, last_seq: int, drafts: Sequence[Draft]) -> list[Event]:
    """Store events. An UPDATE of the job row has already reserved their numbers, which end with `last_seq`."""
    now = clock.now(conn)
    first = last_seq - len(drafts) + 1
    made = [
        Event(first + i, draft.type, draft.level, draft.at(now), draft.message, dict(draft.data))
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
    """Return the newest event of type `kind`, or None."""
    event = tables.event
    query = (
        sa.select(event.c.seq, event.c.type, event.c.level, event.c.at, event.c.message, event.c.data)
        .where(event.c.job_id == job_id, event.c.type == kind)
        .order_by(event.c.seq.desc())
        .limit(1)
    )
    row = conn.execute(query).one_or_none()
    return None if row is None else Event(**row._asdict())
