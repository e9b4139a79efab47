"""Operations on keys."""

from datetime import timedelta

from tagsmith.app.deps import Caller
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.core.base.errors import Conflict
from tagsmith.core.store import keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import KeyRow, Scope
from tagsmith.core.store.paging import Page
from tagsmith.wire import ApiKey, CreatedKey, NewKey


def create(database: Database, new: NewKey, caller: Caller) -> ChangeResponse[CreatedKey]:
    """Create a key."""
    _require_key(caller)
    expires_in = None if new.expires_in_seconds is None else timedelta(seconds=new.expires_in_seconds)
    with database.write() as conn:
        scopes = [Scope(scope) for scope in new.scopes]
        row, token = keys.create(conn, new.name, scopes, expires_in=expires_in, created_by=caller.actor)
        made = CreatedKey(**ApiKey.model_validate(row).model_dump(), token=token)
        response = ChangeResponse(made, location=path_of(row.id), headers={"cache-control": "no-store"})
        return caller.respond(conn, response)


def list_page(database: Database, limit: int, cursor: str | None) -> Page[KeyRow]:
    """List keys, newest first."""
    with database.read() as conn:
        return keys.page(conn, limit, cursor)


def get(database: Database, key_id: str) -> KeyRow:
    """Return one key."""
    with database.read() as conn:
        return keys.get(conn, key_id)


def revoke(database: Database, key_id: str, caller: Caller) -> None:
    """Revoke a key."""
    with database.write() as conn:
        keys.get(conn, key_id)
        _require_key(caller)
        keys.revoke(conn, key_id)
        caller.record(conn)


def path_of(key_id: str) -> str:
    """Return the path of a key."""
    return f"/keys/{key_id}"


def _require_key(caller: Caller) -> None:
    """Raise Conflict for a caller without a key: creating the first key would lock out all other callers."""
    if caller.key is None:
        reason = "No key is required yet. Create the first one with `tagsmith keys create --scope admin`."
        raise Conflict(reason, code="keys_not_in_force")
