"""What can be done with the audit."""

from core.store import audit
from core.store.audit import DeedRow
from core.store.engine import Database
from core.store.paging import Page


def page(database: Database, limit: int, cursor: str | None, key_id: str | None) -> Page[DeedRow]:
    """List changes, newest first."""
    with database.read() as conn:
        return audit.page(conn, limit, cursor, key_id)
