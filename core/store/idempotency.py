"""Responses kept per idempotency key: the first request is carried out, a repeated one gets the stored response.

A request in progress holds its row for a short while and renews the hold. Its response is stored in the transaction of
its change. When its process dies before the commit, the hold expires and the next request takes over. When it dies
after the commit, the next request gets the stored response.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Conflict
from tagsmith.core.store import lease_clock, tables
from tagsmith.core.store.engine import insert_if_new

#: How long a request holds its row without renewal. A caller waits no longer than this for a dead process.
HELD = timedelta(seconds=30)
#: How long a response is kept by default. Clients do not retry after a day.
KEPT = timedelta(days=1)

_stored = tables.kept_answer


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response to the first request with a key."""

    #: Hash of the request. Another request with the same key has another fingerprint.
    fingerprint: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class InProgress(Conflict):
    """The first request with this key is not finished."""

    default_code = "idempotency_key_in_use"


def begin(conn: Connection, row_id: str, attempt: str) -> StoredResponse | None:
    """Hold a row for a new request and return None, or return the response to an earlier one."""
    now = lease_clock.now(conn)
    values = {"id": row_id, "attempt": attempt, "expires_at": now + HELD}
    if insert_if_new(conn, _stored, values):
        return None
    empty = {"fingerprint": None, "status": None, "headers": None, "body": None}
    taken = conn.execute(
        _stored.update().where(_stored.c.id == row_id, _stored.c.expires_at <= now).values(**values | empty)
    )
    if taken.rowcount == 1:
        return None
    row = conn.execute(sa.select(_stored).where(_stored.c.id == row_id)).one_or_none()
    if row is None or row.status is None:
        raise InProgress("A request with this Idempotency-Key is in progress.")
    return StoredResponse(row.fingerprint, row.status, row.headers, row.body)


def renew(conn: Connection, row_id: str, attempt: str) -> None:
    """Extend the hold on a row."""
    conn.execute(
        _stored.update().where(_pending(row_id, attempt)).values(expires_at=lease_clock.now(conn) + HELD)
    )


def store(
    conn: Connection, row_id: str, attempt: str, response: StoredResponse, kept: timedelta = KEPT
) -> None:
    """Store the response in the transaction of the change. Raises InProgress if another request has taken over."""
    stored = conn.execute(
        _stored.update()
        .where(_pending(row_id, attempt))
        .values(
            fingerprint=response.fingerprint,
            status=response.status,
            headers=dict(response.headers),
            body=response.body,
            expires_at=lease_clock.now(conn) + kept,
        )
    )
    if stored.rowcount != 1:
        raise InProgress("Another request with this Idempotency-Key has taken over.")


def release(conn: Connection, row_id: str, attempt: str) -> None:
    """Remove the row of a request that changed nothing, so that it can be sent again."""
    conn.execute(_stored.delete().where(_pending(row_id, attempt)))


def clean(conn: Connection) -> int:
    """Remove expired rows; return their number."""
    return int(conn.execute(_stored.delete().where(_stored.c.expires_at <= lease_clock.now(conn))).rowcount)


def _pending(row_id: str, attempt: str) -> sa.ColumnElement[bool]:
    """The row of a request whose response is not stored."""
    return sa.and_(_stored.c.id == row_id, _stored.c.attempt == attempt, _stored.c.status.is_(None))
