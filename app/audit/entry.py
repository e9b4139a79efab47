"""The audit entry of a request."""

import dataclasses

from sqlalchemy.engine import Connection
from starlette.types import Scope

from tagsmith.core.store import audit
from tagsmith.core.store.audit import NewAuditEntry


class RequestAudit:
    """Records what one request changes, once, in the transaction that makes the change."""

    def __init__(self, scope: Scope, entry: NewAuditEntry) -> None:
        self._scope = scope
        self._entry = entry
        self.written = False

    def write(
        self,
        conn: Connection,
        location: str | None = None,
        note: str | None = None,
        status: int | None = None,
    ) -> None:
        """Add the entry to a transaction. Without `status` it gets the status code of the route."""
        if status is None:
            status = getattr(self._scope["route"], "status_code", None) or 200
        audit.record(conn, dataclasses.replace(self._entry, status=status, location=location, note=note))
        self.written = True
