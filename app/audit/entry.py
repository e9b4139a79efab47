"""The entry of a request in the audit."""

import dataclasses

from sqlalchemy.engine import Connection
from starlette.types import Scope

from core.store import audit
from core.store.audit import Deed


class Entry:
    """What one request did, recorded once: in the transaction that does it, so that neither is there alone."""

    def __init__(self, scope: Scope, deed: Deed) -> None:
        self._scope = scope
        self._deed = deed
        self.written = False

    def write(
        self,
        conn: Connection,
        location: str | None = None,
        note: str | None = None,
        status: int | None = None,
    ) -> None:
        """Add it to a transaction; if that is undone, so is this. The status is the route's if none is given."""
        if status is None:
            status = getattr(self._scope["route"], "status_code", None) or 200
        audit.record(conn, dataclasses.replace(self._deed, status=status, location=location, note=note))
        self.written = True
