"""Operations on the audit log."""

from tagsmith.core.store import audit
from tagsmith.core.store.audit import AuditRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.paging import Page


def list_page(database: Database, limit: int, cursor: str | None, key_id: str | None) -> Page[AuditRow]:
    """List changes, newest first."""
    with database.read() as conn:
        return audit.page(conn, limit, cursor, key_id)
