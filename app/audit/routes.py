"""The route of the audit log."""

from typing import Annotated

from fastapi import APIRouter, Query

from tagsmith import wire
from tagsmith.app.audit import service
from tagsmith.app.deps import DatabaseDep
from tagsmith.app.http.params import DEFAULT_LIMIT, Cursor, Limit
from tagsmith.app.http.policy import policy
from tagsmith.core.store.audit import AuditRow
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.paging import Page

router = APIRouter(prefix="/audit", tags=["audit"])

ByKey = Annotated[str | None, Query(max_length=64, description="Only changes made with this key.")]


@router.get("", response_model=wire.Listing[wire.AuditEntry])
@policy(Scope.ADMIN)
def list_audit_entries(
    database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None, key: ByKey = None
) -> Page[AuditRow]:
    """List changes, newest first: who, when, what, in which request."""
    return service.list_page(database, limit, cursor, key)
