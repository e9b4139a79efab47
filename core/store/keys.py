"""Keys: who may call, and what for. Only a hash of each is stored."""

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

from core.errors import NotFound
from core.store import clock, paging, tables
from core.store.ids import ALPHABET, LENGTH, new_id

SECRET_BYTES = 32
#: Knowing to the minute when a key was last used is enough, and keeps requests from becoming writes.
USED_EVERY = timedelta(minutes=1)

_key = tables.api_key
_COLUMNS = [column for column in _key.c if column.name != "sha256"]
_PAGES = paging.Key((_key.c.created_at, _key.c.id))
_TOKEN = re.compile(rf"(key_[{ALPHABET}]{{{LENGTH}}})_[A-Za-z0-9_-]{{43}}")


class Scope(StrEnum):
    """What a key allows."""

    #: See everything but keys and the audit.
    READ = "read"
    #: Tag.
    TAG = "tag"
    #: Upload corpora and lexicons, run jobs.
    TRAIN = "train"
    #: Change what is served: move aliases, bring in and delete versions.
    PROMOTE = "promote"
    #: All of these, and keys and the audit.
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key, without its secret."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    #: Who made it; None when the command line did.
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    #: To the minute.
    last_used_at: datetime | None

    def allows(self, scope: Scope) -> bool:
        """Whether it may be used for this."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def usable(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def create(
    conn: Connection,
    name: str,
    scopes: Iterable[Scope],
    *,
    expires_in: timedelta | None = None,
    created_by: str | None = None,
) -> tuple[KeyRow, str]:
    """Make a key; (the key, its token). The token is told here and never again."""
    key_id, now = new_id("key"), clock.now(conn)
    token = f"{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    chosen = frozenset(scopes)
    wanted = tuple(scope for scope in Scope if scope in chosen)
    expires_at = None if expires_in is None else now + expires_in
    row = KeyRow(key_id, name, wanted, now, created_by, expires_at, None, None)
    conn.execute(
        _key.insert().values(
            id=row.id,
            name=row.name,
            sha256=_digest(token),
            scopes=[scope.value for scope in wanted],
            created_at=now,
            created_by=created_by,
            expires_at=row.expires_at,
        )
    )
    return row, token


def of_token(conn: Connection, token: str) -> KeyRow | None:
    """Find the key that a token is of, usable or not."""
    parsed = _TOKEN.fullmatch(token)
    if parsed is None:
        return None
    found = conn.execute(sa.select(_key).where(_key.c.id == parsed[1])).one_or_none()
    if found is None or not hmac.compare_digest(found.sha256, _digest(token)):
        return None
    return get(conn, found.id)


def get(conn: Connection, key_id: str) -> KeyRow:
    """Give one key."""
    row = conn.execute(sa.select(*_COLUMNS).where(_key.c.id == key_id)).one_or_none()
    if row is None:
        raise _missing(key_id)
    return _make(row)


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[KeyRow]:
    """List keys, newest first, also those that can no longer be used."""
    return paging.fetch(conn, sa.select(*_COLUMNS), _PAGES, limit, cursor, _make)


def revoke(conn: Connection, key_id: str) -> None:
    """End a key for good. Ending it twice changes nothing."""
    get(conn, key_id)
    ending = _key.update().where(_key.c.id == key_id, _key.c.revoked_at.is_(None))
    conn.execute(ending.values(revoked_at=clock.now(conn)))


def used(conn: Connection, key_id: str) -> None:
    """Note that a key is being used, unless that was noted a short while ago."""
    now = clock.now(conn)
    due = sa.or_(_key.c.last_used_at.is_(None), _key.c.last_used_at <= now - USED_EVERY)
    conn.execute(_key.update().where(_key.c.id == key_id, due).values(last_used_at=now))


def any_made(conn: Connection) -> bool:
    """Tell whether there ever was a key."""
    return conn.execute(sa.select(_key.c.id).limit(1)).first() is not None


def any_usable(conn: Connection) -> bool:
    """Tell whether there is a key that can be used; there is none before the first migration."""
    if not sa.inspect(conn).has_table(_key.name):
        return False
    usable = sa.and_(
        _key.c.revoked_at.is_(None), sa.or_(_key.c.expires_at.is_(None), _key.c.expires_at > clock.now(conn))
    )
    return conn.execute(sa.select(_key.c.id).where(usable).limit(1)).first() is not None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _missing(key_id: str) -> NotFound:
    return NotFound(f"there is no key {key_id}", code="key_not_found")


def _make(row: Row[Any]) -> KeyRow:
    return KeyRow(**{**row._asdict(), "scopes": tuple(map(Scope, row.scopes))})
