"""Routes for keys."""

from fastapi import APIRouter, Response

from tagsmith import wire
from tagsmith.app.deps import CallerDep, DatabaseDep
from tagsmith.app.http.bodies import JsonRoute
from tagsmith.app.http.params import DEFAULT_LIMIT, Cursor, KeyId, Limit
from tagsmith.app.http.policy import policy
from tagsmith.app.keys import service
from tagsmith.core.store.keys import KeyRow, Scope
from tagsmith.core.store.paging import Page

router = APIRouter(prefix="/keys", tags=["keys"], route_class=JsonRoute)


@router.post("", status_code=201, response_model=wire.CreatedKey)
@policy(Scope.ADMIN, idempotent=True, secret_fields=("token",), audit=True)
def create_key(new: wire.NewKey, database: DatabaseDep, caller: CallerDep) -> Response:
    """Create a key. Only this response contains its token."""
    return service.create(database, new, caller).response()


@router.get("", response_model=wire.Listing[wire.ApiKey])
@policy(Scope.ADMIN, etag=True)
def list_keys(database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[KeyRow]:
    """List keys, newest first, including revoked and expired ones."""
    return service.list_page(database, limit, cursor)


@router.get("/{key_id}", response_model=wire.ApiKey)
@policy(Scope.ADMIN, etag=True)
def get_key(key_id: KeyId, database: DatabaseDep) -> KeyRow:
    """Return one key, without its token."""
    return service.get(database, key_id)


@router.delete("/{key_id}", status_code=204)
@policy(Scope.ADMIN, audit=True)
def revoke_key(key_id: KeyId, database: DatabaseDep, caller: CallerDep) -> None:
    """Revoke a key. Every API process rejects it within two seconds. Repeating the request is allowed."""
    service.revoke(database, key_id, caller)
