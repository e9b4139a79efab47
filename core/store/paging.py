"""Keyset pagination: inserted and deleted rows do not shift the following pages."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import Invalid
from tagsmith.core.store.clock import UtcDateTime

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list, and the cursor of the next page if there is one."""

    data: list[T]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class SortKey:
    """The columns that a list is sorted by, newest first. Together they are unique."""

    columns: tuple[sa.Column[Any], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


def fetch(
    conn: Connection,
    query: sa.Select[Any],
    key: SortKey,
    limit: int,
    cursor: str | None,
    make: Callable[[Row[Any]], T],
) -> Page[T]:
    """Return the page of `query` after `cursor`; `limit` is at least 1."""
    if cursor is not None:
        after = _decode(cursor, key.columns)
        query = query.where(sa.tuple_(*key.columns) < sa.tuple_(*after))
    query = query.order_by(*(column.desc() for column in key.columns)).limit(limit + 1)
    rows = conn.execute(query).all()
    more = len(rows) > limit
    rows = rows[:limit]
    next_cursor = _encode([getattr(rows[-1], name) for name in key.names]) if more else None
    return Page([make(row) for row in rows], next_cursor)


def _encode(values: Sequence[object]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(list(values))).decode().rstrip("=")


def _decode(cursor: str, columns: Sequence[sa.Column[Any]]) -> list[sa.ColumnElement[Any]]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        values = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        pairs = zip(columns, list(values), strict=True)
        return [sa.literal(_typed(value, column), column.type) for column, value in pairs]
    except (ValueError, TypeError, binascii.Error):
        raise Invalid(
            "The cursor is not from this list. Start again without a cursor.", code="invalid_cursor"
        ) from None


def _typed(value: object, column: sa.Column[Any]) -> object:
    if isinstance(column.type, UtcDateTime) and isinstance(value, str):
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None:
            return at
    elif type(value) is (int if isinstance(column.type, sa.Integer) else str):
        return value
    raise ValueError("The value does not have the type of the column.")
