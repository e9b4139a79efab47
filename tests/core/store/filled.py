"""Rows in every table of any schema, on either dialect: row n of a table refers to row n of others."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
import zstandard
from sqlalchemy.engine import Connection

#: The first row has a value in every column, the second null wherever it may be.
ROWS = 2
AT = datetime(2026, 3, 1, 8, 30, 0, 123456, tzinfo=UTC)
TEXT = [b"Ada B-PER\n" * 1000, "Zoë O\n".encode()]
SCORES = {"sentences": 2, "f1": 70.5, "accuracy": 80.25, "by_type": {}}

#: Each has blobs of its own, which go when it goes.
OWNERS = ("corpus", "lexicon", "model_version", "job_checkpoint")

Rows = list[dict[str, Any]]


def fill(conn: Connection) -> dict[str, Rows]:
    """Insert rows into every table but those of Alembic and of the registry, which has one; return them."""
    metadata = sa.MetaData()
    metadata.reflect(conn)
    made: dict[str, Rows] = {}
    for table in metadata.sorted_tables:
        if table.name in ("alembic_version", "registry"):
            continue
        made[table.name] = [
            _row(table, number, made, owner)
            for owner in (OWNERS if table.name in ("blob", "blob_chunk") else (table.name,))
            for number in range(ROWS)
        ]
        for row in made[table.name]:
            conn.execute(table.insert().values(**{name: _bound(conn, row[name]) for name in row}))
    return made


def stored(conn: Connection) -> dict[str, Rows]:
    """Return all rows of all tables, in the order of their keys."""
    metadata = sa.MetaData()
    metadata.reflect(conn)
    return {
        table.name: [
            {name: _found(value) for name, value in row.items()}
            for row in conn.execute(sa.select(table).order_by(*table.primary_key)).mappings()
        ]
        for table in metadata.sorted_tables
        if table.name != "alembic_version"
    }


def lost(before: dict[str, Rows], after: dict[str, Rows]) -> list[str]:
    """List the rows of `before` that `after` lacks or that have other values there. Columns may come and go."""
    return [
        f"{name}: {row}"
        for name, rows in before.items()
        for row in rows
        if name in after
        and _owner(row) in (None, *after)
        and not any(all(each.get(key, value) == value for key, value in row.items()) for each in after[name])
    ]


def _owner(row: dict[str, Any]) -> str | None:
    """The table whose rows have a blob."""
    named = str(row.get("blob_id") or row.get("id") or "")
    return named.removeprefix("blb_")[:-1] if named.startswith("blb_") else None


def _row(table: sa.Table, number: int, made: dict[str, Rows], owner: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for constraint in table.foreign_key_constraints:
        for element in constraint.elements:
            if element.column.table.name == "blob":
                row[element.parent.name] = f"blb_{owner}{number}"
            else:
                row[element.parent.name] = made[element.column.table.name][number][element.column.name]
    special = _special(table.name, number, owner)
    for column in table.columns:
        if column.name in special:
            row[column.name] = special[column.name]
        elif column.name not in row:
            row[column.name] = None if column.nullable and number else _value(column, number)
    return row


def _special(table: str, number: int, owner: str) -> dict[str, Any]:
    text = TEXT[number]
    digest = hashlib.sha256(text).hexdigest()
    content = {"size_bytes": len(text), "sha256": digest}
    job_id = f"job_01hzy3m5v8q2{number}"
    return {
        "blob": {"id": f"blb_{owner}{number}", **content, "chunks": 1},
        "blob_chunk": {"seq": 0, "sha256": digest, "data": zstandard.compress(text)},
        "job": {"id": job_id, "suffix": job_id[-6:], "kind": "train", "state": ("running", "queued")[number]},
        "corpus": {"id": f"crp_{number}", "labels": ["B-PER", "O"], **content},
        "lexicon": content,
        "corpus_name": {"name": f"name {number}", "last_number": 1},
        "model": {"deleted_at": None},
        "model_version": {
            **content,
            "corpus": f"crp_{number}",
            "spec": {"dev": {"corpus": f"crp_{number}"}},
            "metrics": {"dev": SCORES},
        },
        "kept_answer": {"status": 201},
    }.get(table, {})


def _value(column: sa.Column[Any], number: int) -> Any:
    kind = column.type
    if isinstance(kind, sa.JSON):
        return {
            "number": number,
            "text": "Zoë \U0001f600",
            "list": [1, 2.5, None, True],
            "deep": {"b": 1, "a": 0},
        }
    if isinstance(kind, sa.DateTime):
        return AT + timedelta(microseconds=number)
    if isinstance(kind, sa.Boolean):
        return bool(number)
    if isinstance(kind, sa.Float):
        return 0.1 + number
    if isinstance(kind, sa.BigInteger):
        return (1 << 62) + number
    if isinstance(kind, sa.Integer):
        return 1 + number
    return f"{column.name[:4]}ï{number}" if isinstance(kind, sa.String) else bytes(range(256))


def _bound(conn: Connection, value: Any) -> Any:
    if conn.dialect.name == "sqlite" and isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return sa.null() if value is None else value


def _found(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return bytes(value) if isinstance(value, memoryview) else value
