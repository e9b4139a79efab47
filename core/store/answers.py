"""Answers to requests that may come twice: the first is carried out, the others are told what it was told.

A request that is being answered holds its row for a short while and renews that; when its process is lost, the next
one takes over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.errors import Conflict
from core.store import clock, tables
from core.store.engine import insert_if_new

#: How long a request holds its row without renewing: a lost process keeps its caller waiting no longer.
HELD = timedelta(seconds=30)
#: How long an answer is given again: a day, after which nobody retries.
KEPT = timedelta(hours=24)

_answer = tables.kept_answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was told."""

    #: Of the request, to tell another one that came with the same key.
    fingerprint: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class InProgress(Conflict):
    """The first request with this key has not been answered yet."""

    default_code = "idempotency_key_in_use"


def begin(conn: Connection, answer_id: str, attempt: str) -> Answer | None:
    """Hold a row for a new request, and give None; or give the answer that an earlier one got."""
    now = clock.now(conn)
    values = {"id": answer_id, "attempt": attempt, "expires_at": now + HELD}
    if insert_if_new(conn, _answer, values):
        return None
    empty = {"fingerprint": None, "status": None, "headers": None, "body": None}
    taken = conn.execute(
        _answer.update()
        .where(_answer.c.id == answer_id, _answer.c.expires_at <= now)
        .values(**values | empty)
    )
    if taken.rowcount == 1:
        return None
    row = conn.execute(sa.select(_answer).where(_answer.c.id == answer_id)).one_or_none()
    if row is None or row.status is None:
        raise InProgress("A request with this Idempotency-Key is being answered.")
    return Answer(row.fingerprint, row.status, row.headers, row.body)


def renew(conn: Connection, answer_id: str, attempt: str) -> None:
    """Go on holding a row."""
    mine = sa.and_(_mine(answer_id, attempt), _answer.c.status.is_(None))
    conn.execute(_answer.update().where(mine).values(expires_at=clock.now(conn) + HELD))


def finish(conn: Connection, answer_id: str, attempt: str, answer: Answer) -> None:
    """Keep the answer, unless another request took over meanwhile."""
    conn.execute(
        _answer.update()
        .where(_mine(answer_id, attempt))
        .values(
            fingerprint=answer.fingerprint,
            status=answer.status,
            headers=dict(answer.headers),
            body=answer.body,
            expires_at=clock.now(conn) + KEPT,
        )
    )


def release(conn: Connection, answer_id: str, attempt: str) -> None:
    """Forget a request that changed nothing, so that it can be made again."""
    conn.execute(_answer.delete().where(_mine(answer_id, attempt)))


def clean(conn: Connection) -> int:
    """Remove what is no longer given again; how many there were."""
    return int(conn.execute(_answer.delete().where(_answer.c.expires_at <= clock.now(conn))).rowcount)


def _mine(answer_id: str, attempt: str) -> sa.ColumnElement[bool]:
    return sa.and_(_answer.c.id == answer_id, _answer.c.attempt == attempt)
