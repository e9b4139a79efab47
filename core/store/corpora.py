"""Uploaded corpora and their statistics."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.store import blobs, paging, tables, uploads
from tagsmith.core.store.ids import new_id

#: Columns of the table that are in a `CorpusRow`.
_COLUMNS = [column for column in tables.corpus.c if column.name != "blob_id"]
_KEY = paging.SortKey((tables.corpus.c.created_at, tables.corpus.c.id))


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """A corpus. `size_bytes` and `sha256` are those of the decompressed text."""

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
    options: dict[str, Any] = field(default_factory=dict)  # options of the format


def insert(conn: Connection, row: CorpusRow, chunks: Iterable[bytes]) -> CorpusRow:
    """Store a corpus and its text. Size and digest of `row` are replaced by those of the stored bytes."""
    blob = blobs.write(conn, new_id("blb"), chunks)
    row = dataclasses.replace(row, size_bytes=blob.size_bytes, sha256=blob.sha256)
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    conn.execute(tables.corpus.insert().values(**values, blob_id=blob.id))
    return row


def get(conn: Connection, corpus_id: str) -> CorpusRow:
    """Return a corpus, or raise NotFound."""
    row = conn.execute(sa.select(*_COLUMNS).where(tables.corpus.c.id == corpus_id)).one_or_none()
    if row is None:
        raise missing(corpus_id)
    return _make(row)


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[CorpusRow]:
    """List corpora, newest first."""
    return paging.fetch(conn, sa.select(*_COLUMNS), _KEY, limit, cursor, _make)


def content(conn: Connection, corpus_id: str) -> Iterator[bytes]:
    """Yield the text in chunks, within the caller's transaction."""
    return blobs.read(conn, blob_id(conn, corpus_id))


def blob_id(conn: Connection, corpus_id: str) -> str:
    """Return the blob id of the text, for `blobs.stream`."""
    return uploads.blob_id(conn, tables.corpus, corpus_id)


def hold(conn: Connection, corpus_ids: Iterable[str]) -> list[str]:
    """Protect corpora from deletion until the transaction ends; return their distinct ids."""
    return uploads.hold(conn, tables.corpus, corpus_ids)


def delete(conn: Connection, corpus_id: str) -> None:
    """Delete a corpus and its text; raise Conflict if an active job or a policy uses it."""
    uploads.lock(conn, tables.corpus, corpus_id)
    policy = tables.model_policy.c
    query = sa.select(policy.model).where(policy.corpus == corpus_id).order_by(policy.model)
    guarded = conn.scalars(query.limit(1)).one_or_none()
    if guarded is not None:
        message = f"Corpus {corpus_id} is used by the policy of model {guarded}. Change that policy first."
        raise Conflict(message, code="corpus_in_use")
    uploads.delete(conn, tables.corpus, tables.job_corpus, corpus_id)


def missing(corpus_id: str) -> NotFound:
    """Make the error for a corpus that does not exist."""
    return uploads.missing(tables.corpus, corpus_id)


def _make(row: Row[Any]) -> CorpusRow:
    return CorpusRow(**row._asdict())
