"""API keys and their scopes. Only a hash of each token is stored."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import NotFound
from tagsmith.core.store import clock, paging, tables
from tagsmith.core.store.ids import ALPHABET, LENGTH, new_id

SECRET_BYTES = 32
#: Minimum interval between updates of `last_used_at`, so that not every request writes to the database.
USE_INTERVAL = timedelta(minutes=1)

_key = tables.api_key
_COLUMNS = [column for column in _key.c if column.name != "sha256"]
_PAGES = paging.SortKey((_key.c.created_at, _key.c.id))
_TOKEN = re.compile(rf"(key_[{ALPHABET}]{{{LENGTH}}})_[A-Za-z0-9_-]{{43}}")


class Scope(StrEnum):
    """A permission of a key."""

    #: Read everything except keys and the audit log.
    READ = "read"
    #: Tag.
    TAG = "tag"
    #: Upload corpora and lexicons, run jobs.
    TRAIN = "train"
    #: Change what is served: move aliases, import and delete versions.
    PROMOTE = "promote"
    #: All of these, and keys and the audit log.
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key without its secret."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    #: The key or caller that created it; None for the command line.
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    #: Accurate to the minute.
    last_used_at: datetime | None

    def allows(self, scope: Scope) -> bool:
        """Whether the key has a scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def usable(self, now: datetime) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def create(
    conn: Connection,
    name: str,
    scopes: Iterable[Scope],
    *,
    expires_in: timedelta | None = None,
    created_by: str | None = None,
) -> tuple[KeyRow, str]:
    """Create a key; return it with its token. The token cannot be read again later."""
    key_id, now = new_id("key"), clock.now(conn)
    token = f"{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    requested = frozenset(scopes)
    ordered = tuple(scope for scope in Scope if scope in requested)
    expires_at = None if expires_in is None else now + expires_in
    row = KeyRow(key_id, name, ordered, now, created_by, expires_at, None, None)
    conn.execute(
        _key.insert().values(
            id=row.id,
            name=row.name,
            sha256=_digest(token),
            scopes=[scope.value for scope in ordered],
            created_at=now,
            created_by=created_by,
            expires_at=row.expires_at,
        )
    )
    return row, token


def of_token(conn: Connection, token: str) -> KeyRow | None:
    """Return the key of a token, usable or not; None if there is none."""
    parsed = _TOKEN.fullmatch(token)
    if parsed is None:
        return None
    found = conn.execute(sa.select(_key).where(_key.c.id == parsed[1])).one_or_none()
    if found is None or not hmac.compare_digest(found.sha256, _digest(token)):
        return None
    return get(conn, found.id)


def get(conn: Connection, key_id: str) -> KeyRow:
    """Return a key, or raise NotFound."""
    row = conn.execute(sa.select(*_COLUMNS).where(_key.c.id == key_id)).one_or_none()
    if row is None:
        raise _missing(key_id)
    return _make(row)


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[KeyRow]:
    """List keys, newest first, including revoked and expired ones."""
    return paging.fetch(conn, sa.select(*_COLUMNS), _PAGES, limit, cursor, _make)


def revoke(conn: Connection, key_id: str) -> None:
    """Revoke a key for good. Revoking it again changes nothing."""
    get(conn, key_id)
    ending = _key.update().where(_key.c.id == key_id, _key.c.revoked_at.is_(None))
    conn.execute(ending.values(revoked_at=clock.now(conn)))


def record_use(conn: Connection, key_id: str) -> None:
    """Record the use of a key, at most once per USE_INTERVAL."""
    now = clock.now(conn)
    due = sa.or_(_key.c.last_used_at.is_(None), _key.c.last_used_at <= now - USE_INTERVAL)
    conn.execute(_key.update().where(_key.c.id == key_id, due).values(last_used_at=now))


def any_created(conn: Connection) -> bool:
    """Whether any key was ever created."""
    return conn.execute(sa.select(_key.c.id).limit(1)).first() is not None


def any_usable(conn: Connection) -> bool:
    """Whether there is a usable key. Before the first migration there is none."""
    if not sa.inspect(conn).has_table(_key.name):
        return False
    usable = sa.and_(
        _key.c.revoked_at.is_(None), sa.or_(_key.c.expires_at.is_(None), _key.c.expires_at > clock.now(conn))
    )
    return conn.execute(sa.select(_key.c.id).where(usable).limit(1)).first() is not None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _missing(key_id: str) -> NotFound:
    return NotFound(f"There is no key {key_id}.", code="key_not_found")


def _make(row: Row[Any]) -> KeyRow:
    return KeyRow(**{**row._asdict(), "scopes": tuple(map(Scope, row.scopes))})
