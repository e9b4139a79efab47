"""What can be done with keys."""

from datetime import timedelta

from app.deps import Caller
from app.keys.schemas import Key, MadeKey, NewKey
from core.errors import Conflict
from core.store import keys
from core.store.engine import Database
from core.store.keys import KeyRow
from core.store.paging import Page


def create(database: Database, new: NewKey, caller: Caller) -> MadeKey:
    """Make a key."""
    _require_key(caller)
    expires_in = None if new.expires_in_seconds is None else timedelta(seconds=new.expires_in_seconds)
    with database.write() as conn:
        row, token = keys.create(conn, new.name, new.scopes, expires_in=expires_in, created_by=caller.actor)
        caller.record(conn, location=location(row.id))
    return MadeKey(**Key.model_validate(row).model_dump(), token=token)


def page(database: Database, limit: int, cursor: str | None) -> Page[KeyRow]:
    """List keys, newest first."""
    with database.read() as conn:
        return keys.page(conn, limit, cursor)


def get(database: Database, key_id: str) -> KeyRow:
    """Give one key."""
    with database.read() as conn:
        return keys.get(conn, key_id)


def revoke(database: Database, key_id: str, caller: Caller) -> None:
    """End a key."""
    with database.write() as conn:
        keys.get(conn, key_id)
        _require_key(caller)
        keys.revoke(conn, key_id)
        caller.record(conn)


def location(key_id: str) -> str:
    """Where a key is found."""
    return f"/keys/{key_id}"


def _require_key(caller: Caller) -> None:
    """Whoever needs no key may not make one either: the first would lock everybody else out."""
    if caller.key is None:
        reason = "Keys are not in force here; `tagsmith keys create --scope admin` makes the first one."
        raise Conflict(reason, code="keys_not_in_force")
