"""`tagsmith keys`: create, list and revoke keys without a key. Also the start-up check that a key exists."""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta

from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Conflict, Invalid
from tagsmith.core.service import data_dir
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store import audit, keys, migrate
from tagsmith.core.store.audit import NewAuditEntry
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import KeyRow, Scope
from tagsmith.wire import ApiKey, CreatedKey

#: Keys per query when all keys are listed.
PAGE = 500


def create(
    settings: Settings, name: str, scopes: Sequence[str], expires_in_seconds: int | None
) -> CreatedKey:
    """Create a key."""
    requested = [_scope(each) for each in scopes]
    expires_in = None if expires_in_seconds is None else timedelta(seconds=expires_in_seconds)
    with _database(settings) as database, database.write() as conn:
        if Scope.ADMIN not in requested and not keys.any_created(conn):
            raise Conflict(
                "The first key must have the scope `admin`. Add `--scope admin`.", code="first_key_not_admin"
            )
        row, token = keys.create(conn, name, requested, expires_in=expires_in)
        _record(conn, "create", f"/keys/{row.id}")
    return CreatedKey.model_validate({**asdict(row), "scopes": list(row.scopes), "token": token})


def list_keys(settings: Settings) -> list[ApiKey]:
    """Return all keys, newest first."""
    with _database(settings) as database:
        return [ApiKey.model_validate(key) for key in _all(database)]


def revoke(settings: Settings, key_id: str) -> None:
    """Revoke a key."""
    with _database(settings) as database, database.write() as conn:
        keys.revoke(conn, key_id)
        _record(conn, "revoke", f"/keys/{key_id}")


def require_key_unless_loopback(settings: Settings) -> None:
    """Raise Conflict for an address that other machines can reach, unless a usable key exists or access is open."""
    if settings.on_loopback or settings.access == ANYONE:
        return
    database = Database(settings.database_url)
    try:
        with database.read() as conn:
            if keys.any_usable(conn):
                return
    finally:
        database.dispose()
    raise Conflict(
        f"{settings.host} is reachable from other machines, but no key exists. Create one with "
        f"`tagsmith keys create --scope admin`, or start with `--access {ANYONE}`.",
        code="no_keys",
    )


def _record(conn: Connection, action: str, location: str) -> None:
    """Record an action in the audit log. There is no request, so the actor is the operating system user."""
    actor = f"user {os.getuid()} on {socket.gethostname()}"
    entry = NewAuditEntry(
        actor=actor,
        key_id=None,
        method="CLI",
        path=f"keys {action}",
        location=location,
        status=0,
        request_id="",
        note=None,
    )
    audit.record(conn, entry)


def _all(database: Database) -> Iterator[KeyRow]:
    cursor = None
    while True:
        with database.read() as conn:
            page = keys.page(conn, PAGE, cursor)
        yield from page.data
        cursor = page.next_cursor
        if cursor is None:
            return


def _scope(text: str) -> Scope:
    try:
        return Scope(text)
    except ValueError:
        message = f"Unknown scope {text!r}. Use one of: {', '.join(Scope)}."
        raise Invalid(message, code="unknown_scope") from None


@contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    """Open the database and migrate it to the newest schema: the first key is created before the first start."""
    data_dir.keep_files_private()
    data_dir.prepare(settings.data_dir)
    migrate.upgrade(settings.database_url)
    database = Database(settings.database_url)
    try:
        yield database
    finally:
        database.dispose()
