"""Uploaded lexicons. The id of a lexicon is derived from its content."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import NotFound
from tagsmith.core.features.lexicon.lexicon import Lexicon, known_kind, read_lexicon
from tagsmith.core.store import blobs, paging, tables, uploads
from tagsmith.core.store.engine import Database, insert_if_new
from tagsmith.core.store.ids import new_id

#: Columns of the table that are in a `LexiconRow`.
_COLUMNS = [column for column in tables.lexicon.c if column.name != "blob_id"]
_KEY = paging.SortKey((tables.lexicon.c.created_at, tables.lexicon.c.id))


@dataclass(frozen=True, slots=True)
class LexiconRow:
    """A lexicon. `size_bytes` and `sha256` are those of the decompressed text."""

    id: str
    name: str
    kind: str
    entries: int
    classes: int
    sha256: str
    size_bytes: int
    created_at: datetime


def insert(conn: Connection, row: LexiconRow, chunks: Iterable[bytes]) -> tuple[LexiconRow, bool]:
    """Store a lexicon, whose `sha256` must be that of its text; return the stored row and whether it is new.

    Storing the same lexicon again changes nothing, not even its name.
    """
    found = conn.execute(sa.select(*_COLUMNS).where(tables.lexicon.c.id == row.id)).one_or_none()
    if found is not None:
        return _make(found), False
    blob = blobs.write(conn, new_id("blb"), chunks)
    if blob.sha256 != row.sha256:
        raise ValueError("The text does not match the sha256 of the lexicon.")
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    stored = insert_if_new(conn, tables.lexicon, {**values, "blob_id": blob.id})
    if not stored:
        # A concurrent upload of the same text finished first.
        blobs.delete(conn, blob.id)
    return (row, True) if stored else (get(conn, row.id), False)


def get(conn: Connection, lexicon_id: str) -> LexiconRow:
    """Return a lexicon, or raise NotFound."""
    row = conn.execute(sa.select(*_COLUMNS).where(tables.lexicon.c.id == lexicon_id)).one_or_none()
    if row is None:
        raise missing(lexicon_id)
    return _make(row)


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[LexiconRow]:
    """List lexicons, newest first."""
    return paging.fetch(conn, sa.select(*_COLUMNS), _KEY, limit, cursor, _make)


def blob_id(conn: Connection, lexicon_id: str) -> str:
    """Return the blob id of the text, for `blobs.stream`."""
    return uploads.blob_id(conn, tables.lexicon, lexicon_id)


def load(db: Database, lexicon_id: str, max_line_bytes: int) -> Lexicon:
    """Read a lexicon without keeping a transaction open."""
    with db.read() as conn:
        row, found = get(conn, lexicon_id), blob_id(conn, lexicon_id)
    return read_lexicon(known_kind(row.kind), blobs.stream(db, found), max_line_bytes=max_line_bytes)


def hold(conn: Connection, lexicon_ids: Iterable[str]) -> list[str]:
    """Protect lexicons from deletion until the transaction ends; return their distinct ids."""
    return uploads.hold(conn, tables.lexicon, lexicon_ids)


def delete(conn: Connection, lexicon_id: str) -> None:
    """Delete a lexicon and its text; raise Conflict if an active job uses it.

    Versions trained with it contain what they need of it.
    """
    uploads.delete(conn, tables.lexicon, tables.job_lexicon, lexicon_id)


def missing(lexicon_id: str) -> NotFound:
    """Make the error for a lexicon that does not exist."""
    return uploads.missing(tables.lexicon, lexicon_id)


def _make(row: Row[Any]) -> LexiconRow:
    return LexiconRow(**row._asdict())
