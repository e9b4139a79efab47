"""The rows of a database in a form that both dialects and every schema share.

The columns are those of the database, not of `tables`: an older schema is saved and restored as it is.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import IO, Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA, JSONB
from sqlalchemy.engine import Connection
from sqlalchemy.types import TypeDecorator

from tagsmith.core.store import tables
from tagsmith.core.store.clock import UtcDateTime

#: Rows that are in memory at once. A chunk of a blob has up to a mebibyte.
ROWS, ROWS_WITH_BYTES = 500, 16

Row = tuple[Any, ...]


class Kind(StrEnum):
    """The type of a column."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    TIME = "time"
    JSON = "json"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class SavedColumn:
    """One column."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class SavedTable:
    """One table. Its rows are read in the order of `key`."""

    name: str
    columns: tuple[SavedColumn, ...]
    key: tuple[str, ...]

    @property
    def has_bytes(self) -> bool:
        """Whether rows can be large."""
        return any(column.kind is Kind.BYTES for column in self.columns)


class _JsonText(TypeDecorator[str]):
    """JSON of PostgreSQL as text, so that nothing is lost on the way through Python."""

    impl = sa.Text
    cache_ok = True

    def bind_expression(self, bindparam: sa.BindParameter[str]) -> sa.ColumnElement[Any]:
        return sa.cast(bindparam, JSONB)

    def column_expression(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        return sa.cast(column, sa.Text)


_TYPES: dict[Kind, sa.types.TypeEngine[Any]] = {
    Kind.TEXT: sa.Text(),
    Kind.INTEGER: sa.BigInteger(),
    Kind.FLOAT: sa.Double(),
    Kind.BOOLEAN: sa.Boolean(),
    Kind.TIME: UtcDateTime(),
    Kind.JSON: sa.Text().with_variant(_JsonText(), "postgresql"),
    Kind.BYTES: sa.LargeBinary(),
}
#: Types that a database reports, most special first.
_KINDS: tuple[tuple[type[sa.types.TypeEngine[Any]], Kind], ...] = (
    (sa.JSON, Kind.JSON),
    (sa.Boolean, Kind.BOOLEAN),
    (sa.DateTime, Kind.TIME),
    (sa.LargeBinary, Kind.BYTES),
    (BYTEA, Kind.BYTES),
    (sa.Integer, Kind.INTEGER),
    (sa.Float, Kind.FLOAT),
    (sa.String, Kind.TEXT),
)


def tables_of(conn: Connection) -> list[SavedTable]:
    """Return the tables of this service that a database has. A table follows those that it refers to."""
    found = sa.MetaData()
    found.reflect(conn, only=lambda name, _: name in tables.metadata.tables)
    return [
        SavedTable(
            str(each.name),
            tuple(SavedColumn(str(column.name), _kind(column)) for column in each.columns),
            tuple(str(column.name) for column in each.primary_key),
        )
        for each in found.sorted_tables
    ]


def count(conn: Connection, table: SavedTable) -> int:
    """Return the number of rows."""
    return int(conn.execute(sa.select(sa.func.count()).select_from(_clause(table))).scalar_one())


def read(conn: Connection, table: SavedTable) -> Generator[Row, None, None]:
    """Yield all rows in the order of the key, which is the same on both dialects."""
    clause = _clause(table)
    order = []
    for name in table.key:
        column = clause.c[name]
        is_text = isinstance(column.type, sa.Text)
        order.append(sa.collate(column, "C") if is_text and conn.dialect.name == "postgresql" else column)
    size = ROWS_WITH_BYTES if table.has_bytes else ROWS
    options = {"stream_results": True, "yield_per": size}
    with conn.execute(sa.select(*clause.c).order_by(*order), execution_options=options) as result:
        for row in result:
            yield tuple(row)


def insert(conn: Connection, table: SavedTable, rows: Iterable[Row]) -> None:
    """Insert rows."""
    statement = _clause(table).insert()
    names = [column.name for column in table.columns]
    size, left = ROWS_WITH_BYTES if table.has_bytes else ROWS, iter(rows)
    while some := [dict(zip(names, row, strict=True)) for row in islice(left, size)]:
        conn.execute(statement, some)


def delete_all(conn: Connection, table: SavedTable) -> None:
    """Delete all rows."""
    conn.execute(_clause(table).delete())


def encode(columns: Sequence[SavedColumn], row: Row) -> bytes:
    """Return one row as a line of JSON. Its bytes follow the line, each of the length that the line has for them."""
    values, parts = [], []
    for column, value in zip(columns, row, strict=True):
        if column.kind is Kind.BYTES and value is not None:
            parts.append(bytes(value))
            value = len(value)  # noqa: PLW2901
        elif column.kind is Kind.FLOAT and value is not None:
            value = repr(float(value))  # noqa: PLW2901  # JSON has neither NaN nor infinities
        values.append(value)
    return b"".join([orjson.dumps(values), b"\n", *(part + b"\n" for part in parts)])


def decode(columns: Sequence[SavedColumn], stream: IO[bytes]) -> Iterator[Row]:
    """Yield the rows of a stream. Raises ValueError for anything that `encode` does not write."""
    while line := stream.readline():
        values = orjson.loads(line)
        if not isinstance(values, list) or len(values) != len(columns):
            raise ValueError("a row has the wrong number of values")
        yield tuple(
            None if value is None else _decoded(column.kind, value, stream)
            for column, value in zip(columns, values, strict=True)
        )


def same(columns: Sequence[SavedColumn], one: Row, other: Row) -> bool:
    """Whether two rows have the same values. PostgreSQL writes JSON in another form."""
    return all(
        orjson.loads(a) == orjson.loads(b)
        if column.kind is Kind.JSON and a is not None and b is not None
        else a == b or (a != a and b != b)  # noqa: PLR0124  # NaN
        for column, a, b in zip(columns, one, other, strict=True)
    )


def _decoded(kind: Kind, value: Any, stream: IO[bytes]) -> Any:
    if kind is Kind.BYTES:
        data = stream.read(value)
        if len(data) != value or stream.read(1) != b"\n":
            raise ValueError("the bytes of a row are incomplete")
        return data
    if kind is Kind.TIME:
        return datetime.fromisoformat(value)
    return float(value) if kind is Kind.FLOAT else value


def _clause(table: SavedTable) -> sa.TableClause:
    return sa.table(table.name, *(sa.column(each.name, _TYPES[each.kind]) for each in table.columns))


def _kind(column: sa.Column[Any]) -> Kind:
    for known, kind in _KINDS:
        if isinstance(column.type, known):
            return kind
    raise TypeError(f"The column {column} has a type that backups do not know: {column.type!r}.")
