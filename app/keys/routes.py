"""Routes of keys."""

from fastapi import APIRouter, Response

from app.body import JsonRoute
from app.deps import CallerDep, DatabaseDep
from app.keys import schemas, service
from app.params import DEFAULT_LIMIT, Cursor, KeyId, Limit, Listing
from core.store.keys import KeyRow
from core.store.paging import Page

router = APIRouter(prefix="/keys", tags=["keys"], route_class=JsonRoute)


@router.post("", status_code=201)
def create_key(
    new: schemas.NewKey, response: Response, database: DatabaseDep, caller: CallerDep
) -> schemas.MadeKey:
    """Make a key. Its token is in this answer and nowhere else."""
    made = service.create(database, new, caller)
    response.headers["Location"] = service.location(made.id)
    response.headers["Cache-Control"] = "no-store"
    return made


@router.get("", response_model=Listing[schemas.Key])
def list_keys(database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[KeyRow]:
    """List keys, newest first, also those that were revoked or have expired."""
    return service.page(database, limit, cursor)


@router.get("/{key_id}", response_model=schemas.Key)
def get_key(key_id: KeyId, database: DatabaseDep) -> KeyRow:
    """Give one key, without its token."""
    return service.get(database, key_id)


@router.delete("/{key_id}", status_code=204)
def revoke_key(key_id: KeyId, database: DatabaseDep, caller: CallerDep) -> None:
    """Revoke a key. Every API process follows within two seconds; twice is fine."""
    service.revoke(database, key_id, caller)
