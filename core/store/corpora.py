"""Corpora: what was uploaded, and what was counted in it."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from core.errors import Conflict, NotFound
from core.store import blobs, paging, tables
from core.store.ids import new_id
from core.store.states import TERMINAL

#: Columns of the table that make a `CorpusRow`.
_COLUMNS = [column for column in tables.corpus.c if column.name != "blob_id"]
_KEY = paging.Key((tables.corpus.c.created_at, tables.corpus.c.id))


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """One corpus. `size_bytes` and `sha256` are those of the text after decompression."""

    id: str
    name: str
    format: str
    sentences: int
    tokens: int
    columns: list[str]
    labels: list[str]
    sha256: str
    size_bytes: int
    report: dict[str, Any]
    created_at: datetime
    options: dict[str, Any] = field(default_factory=dict)  # of its format


def insert(conn: Connection, row: CorpusRow, chunks: Iterable[bytes]) -> CorpusRow:
    """Store a corpus and its text. Size and digest are taken from the bytes stored, whatever `row` says."""
    blob = blobs.write(conn, new_id("blb"), chunks)
    row = dataclasses.replace(row, size_bytes=blob.size_bytes, sha256=blob.sha256)
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    conn.execute(tables.corpus.insert().values(**values, blob_id=blob.id))
    return row


def get(conn: Connection, corpus_id: str) -> CorpusRow:
    """Give one corpus."""
    row = conn.execute(sa.select(*_COLUMNS).where(tables.corpus.c.id == corpus_id)).one_or_none()
    if row is None:
        raise missing(corpus_id)
    return _make(row)


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[CorpusRow]:
    """List corpora, newest first."""
    return paging.fetch(conn, sa.select(*_COLUMNS), _KEY, limit, cursor, _make)


def content(conn: Connection, corpus_id: str) -> Iterator[bytes]:
    """Give the text, a chunk at a time, within the caller's transaction."""
    return blobs.read(conn, blob_id(conn, corpus_id))


def blob_id(conn: Connection, corpus_id: str) -> str:
    """Give the id of the text, for `blobs.stream`."""
    query = sa.select(tables.corpus.c.blob_id).where(tables.corpus.c.id == corpus_id)
    found = conn.execute(query).scalar_one_or_none()
    if found is None:
        raise missing(corpus_id)
    return str(found)


def delete(conn: Connection, corpus_id: str) -> None:
    """Remove a corpus and its text, unless a job still needs it."""
    corpus, job, uses = tables.corpus, tables.job, tables.job_corpus
    # The lock keeps a job from being created on it between the check and the removal.
    query = sa.select(corpus.c.blob_id).where(corpus.c.id == corpus_id).with_for_update()
    found = conn.execute(query).scalar_one_or_none()
    if found is None:
        raise missing(corpus_id)
    users = (
        sa.select(job.c.id)
        .join(uses, uses.c.job_id == job.c.id)
        .where(uses.c.corpus_id == corpus_id, job.c.state.not_in(TERMINAL))
    )
    user = conn.execute(users.limit(1)).scalar_one_or_none()
    if user is not None:
        raise Conflict(f"corpus {corpus_id} is needed by {user}, which has not ended", code="corpus_in_use")
    conn.execute(corpus.delete().where(corpus.c.id == corpus_id))
    blobs.delete(conn, found)


def missing(corpus_id: str) -> NotFound:
    """The error for a corpus that is not there."""
    return NotFound(f"there is no corpus {corpus_id}", code="corpus_not_found")


def _make(row: Row[Any]) -> CorpusRow:
    return CorpusRow(**row._asdict())
