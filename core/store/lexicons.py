"""Lexicons: what was uploaded, under an id made from its content."""

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from core.errors import NotFound
from core.lexicon.lexicon import Lexicon, known_kind, read_lexicon
from core.store import blobs, paging, tables, texts
from core.store.engine import Database, insert_if_new
from core.store.ids import new_id

#: Columns of the table that make a `LexiconRow`.
_COLUMNS = [column for column in tables.lexicon.c if column.name != "blob_id"]
_KEY = paging.Key((tables.lexicon.c.created_at, tables.lexicon.c.id))


@dataclass(frozen=True, slots=True)
class LexiconRow:
    """One lexicon. `size_bytes` and `sha256` are those of the text after decompression."""

    id: str
    name: str
    kind: str
    entries: int
    classes: int
    sha256: str
    size_bytes: int
    created_at: datetime


def id_of(kind: str, sha256: str) -> str:
    """The id of a lexicon: the same for the same text read the same way."""
    return "lex_" + hashlib.sha256(f"{kind}:{sha256}".encode()).hexdigest()[:40]


def insert(conn: Connection, row: LexiconRow, chunks: Iterable[bytes]) -> tuple[LexiconRow, bool]:
    """Store a lexicon, whose `sha256` must be that of its text; (as stored, whether it is new).

    The same one again changes nothing: what is there stays, with its name.
    """
    found = conn.execute(sa.select(*_COLUMNS).where(tables.lexicon.c.id == row.id)).one_or_none()
    if found is not None:
        return _make(found), False
    blob = blobs.write(conn, new_id("blb"), chunks)
    if blob.sha256 != row.sha256:
        raise ValueError("the text is not the one that the lexicon was made from")
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    stored = insert_if_new(conn, tables.lexicon, {**values, "blob_id": blob.id})
    if not stored:
        # Somebody else's upload of the same text ended while this one was being written.
        blobs.delete(conn, blob.id)
    return (row, True) if stored else (get(conn, row.id), False)


def get(conn: Connection, lexicon_id: str) -> LexiconRow:
    """Give one lexicon."""
    row = conn.execute(sa.select(*_COLUMNS).where(tables.lexicon.c.id == lexicon_id)).one_or_none()
    if row is None:
        raise missing(lexicon_id)
    return _make(row)


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[LexiconRow]:
    """List lexicons, newest first."""
    return paging.fetch(conn, sa.select(*_COLUMNS), _KEY, limit, cursor, _make)


def blob_id(conn: Connection, lexicon_id: str) -> str:
    """Give the id of the text, for `blobs.stream`."""
    return texts.blob_id(conn, tables.lexicon, lexicon_id)


def load(db: Database, lexicon_id: str, max_line_bytes: int) -> Lexicon:
    """Read a lexicon, with no transaction open meanwhile."""
    with db.read() as conn:
        row, found = get(conn, lexicon_id), blob_id(conn, lexicon_id)
    return read_lexicon(known_kind(row.kind), blobs.stream(db, found), max_line_bytes=max_line_bytes)


def hold(conn: Connection, lexicon_ids: Iterable[str]) -> list[str]:
    """Keep lexicons from being deleted until the transaction ends; their ids, each once."""
    return texts.hold(conn, tables.lexicon, lexicon_ids)


def delete(conn: Connection, lexicon_id: str) -> None:
    """Remove a lexicon and its text, unless a job still needs it. Versions made with it carry what they need."""
    texts.delete(conn, tables.lexicon, tables.job_lexicon, lexicon_id)


def missing(lexicon_id: str) -> NotFound:
    """The error for a lexicon that is not there."""
    return texts.missing(tables.lexicon, lexicon_id)


def _make(row: Row[Any]) -> LexiconRow:
    return LexiconRow(**row._asdict())
