"""The audit: every change, who made it, when, and in which request. Rows are never changed, and removed when old."""

from dataclasses import asdict, dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.store import clock, paging, tables
from tagsmith.core.store.ids import new_id

_audit = tables.audit
_KEY = paging.SortKey((_audit.c.at, _audit.c.id))


@dataclass(frozen=True, slots=True)
class NewAuditEntry:
    """One change, to be recorded."""

    #: Name and id of the key, or the client address if keys are not required.
    actor: str | None
    key_id: str | None
    method: str
    path: str
    #: Where to find what was created, if anything was.
    location: str | None
    status: int
    request_id: str
    #: Further information, such as which rule was overridden and why.
    note: str | None


@dataclass(frozen=True, slots=True)
class AuditRow(NewAuditEntry):
    """One change as it was recorded."""

    id: str
    at: datetime


def record(conn: Connection, entry: NewAuditEntry) -> None:
    """Add an entry."""
    conn.execute(_audit.insert().values(id=new_id("aud"), at=clock.now(conn), **asdict(entry)))


def remove_before(conn: Connection, moment: datetime, limit: int) -> int:
    """Remove the oldest entries from before a moment; return their number."""
    oldest = sa.select(_audit.c.id).where(_audit.c.at < moment).order_by(_audit.c.at).limit(limit)
    return conn.execute(_audit.delete().where(_audit.c.id.in_(oldest))).rowcount


def page(
    conn: Connection, limit: int, cursor: str | None = None, key_id: str | None = None
) -> paging.Page[AuditRow]:
    """List entries, newest first, of all callers or of one key."""
    query = sa.select(_audit)
    if key_id is not None:
        query = query.where(_audit.c.key_id == key_id)
    return paging.fetch(conn, query, _KEY, limit, cursor, lambda row: AuditRow(**row._asdict()))
