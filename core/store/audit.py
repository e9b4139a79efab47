"""The audit: every change that somebody made, who, when, by which request. Rows are added and never changed."""

from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.store import clock, paging, tables
from core.store.ids import new_id

_audit = tables.audit
_KEY = paging.Key((_audit.c.at, _audit.c.id))


@dataclass(frozen=True, slots=True)
class Deed:
    """One change."""

    #: Name and id of the key, or an address where keys are not in force.
    actor: str | None
    key_id: str | None
    method: str
    path: str
    #: Of what was created, if anything was.
    location: str | None
    status: int
    request_id: str
    #: What else is worth knowing, such as that a rule was overridden, and why.
    note: str | None


@dataclass(frozen=True, slots=True)
class DeedRow(Deed):
    """One change as it was recorded."""

    id: str
    at: datetime


def record(conn: Connection, deed: Deed) -> None:
    """Add a change."""
    conn.execute(_audit.insert().values(id=new_id("aud"), at=clock.now(conn), **asdict(deed)))


def page(
    conn: Connection, limit: int, cursor: str | None = None, key_id: str | None = None
) -> paging.Page[DeedRow]:
    """List changes, newest first, of all callers or of one key."""
    query = sa.select(_audit)
    if key_id is not None:
        query = query.where(_audit.c.key_id == key_id)
    return paging.fetch(conn, query, _KEY, limit, cursor, lambda row: DeedRow(**row._asdict()))
