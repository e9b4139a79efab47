"""The route of the audit."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.audit import schemas, service
from app.deps import DatabaseDep
from app.params import DEFAULT_LIMIT, Cursor, Limit, Listing
from core.store.audit import DeedRow
from core.store.paging import Page

router = APIRouter(prefix="/audit", tags=["audit"])

ByKey = Annotated[str | None, Query(max_length=64, description="Only what was done with this key.")]


@router.get("", response_model=Listing[schemas.Deed])
def list_deeds(
    database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None, key: ByKey = None
) -> Page[DeedRow]:
    """List the changes that were made, newest first: who, when, what, by which request."""
    return service.page(database, limit, cursor, key)
