"""Uploaded corpora and their statistics. Uploads under one name are numbered."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base import suggest
from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.store import blobs, paging, tables, uploads
from tagsmith.core.store.engine import Database, insert_if_new
from tagsmith.core.store.ids import new_id

#: Columns of the table that are in a `CorpusRow`.
_COLUMNS = [column for column in tables.corpus.c if column.name != "blob_id"]
#: `name:2` or `name@2`. Nine digits fit into an integer of the database.
_NUMBERED = re.compile(r"(?P<name>.+)[:@](?P<number>[1-9][0-9]{0,8})", re.DOTALL)
#: Names that are compared with a misspelt one: enough for people, and cheap.
_SUGGESTED = 1000
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
    number: int = 0  # of the upload under its name, from 1; assigned when it is stored

    def __str__(self) -> str:
        return f"{self.name}:{self.number}"

    @property
    def trees(self) -> bool:
        """Whether the words have heads and relations."""
        return self.report.get("trees") is not None

    @property
    def labelled(self) -> bool:
        """Whether there is something to learn from: labels or trees."""
        return bool(self.labels) or self.trees


def insert(conn: Connection, row: CorpusRow, chunks: Iterable[bytes]) -> CorpusRow:
    """Store a corpus and its text as the next upload under its name.

    If `row` has a digest, it must be that of the text: a stored text with the same digest is shared. Otherwise size
    and digest are those of the stored bytes.
    """
    blob = _shared(conn, row.sha256) or blobs.write(conn, new_id("blb"), chunks)
    if row.sha256 and blob.sha256 != row.sha256:
        raise ValueError("The text does not match the sha256 of the corpus.")
    number = _next_number(conn, row.name)
    row = dataclasses.replace(row, number=number, size_bytes=blob.size_bytes, sha256=blob.sha256)
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    conn.execute(tables.corpus.insert().values(**values, blob_id=blob.id))
    return row


def get(conn: Connection, reference: str) -> CorpusRow:
    """Return a corpus by its id, its name (the newest upload) or `name:2`; raise NotFound."""
    corpus = tables.corpus.c
    row = _first(conn, corpus.id == reference)
    numbered = _NUMBERED.fullmatch(reference)
    if row is None and numbered is not None:
        # Before the bare name: nobody can hide an upload with a name such as `train:2`.
        row = _first(conn, corpus.name == numbered["name"], corpus.number == int(numbered["number"]))
    if row is None:
        row = _first(conn, corpus.name == reference)
    if row is None:
        raise _missing(conn, reference, numbered)
    return _make(row)


def page(
    conn: Connection, limit: int, cursor: str | None = None, *, name: str | None = None
) -> paging.Page[CorpusRow]:
    """List corpora, newest first; only the uploads under `name` when given."""
    query = sa.select(*_COLUMNS)
    if name is not None:
        query = query.where(tables.corpus.c.name == name)
    return paging.fetch(conn, query, _KEY, limit, cursor, _make)


def content(conn: Connection, corpus_id: str) -> Iterator[bytes]:
    """Yield the text in chunks, within the caller's transaction."""
    return blobs.read(conn, blob_id(conn, get(conn, corpus_id).id))


def blob_id(conn: Connection, corpus_id: str) -> str:
    """Return the blob id of the text, for `blobs.stream`."""
    return uploads.blob_id(conn, tables.corpus, corpus_id)


def load(db: Database, row: CorpusRow, *, max_line_bytes: int, max_text_bytes: int) -> Corpus:
    """Read a corpus without keeping a transaction open."""
    with db.read() as conn:
        found = blob_id(conn, row.id)
    return formats.read(
        blobs.stream(db, found),
        row.format,
        max_line_bytes=max_line_bytes,
        max_text_bytes=max_text_bytes,
        options=row.options,
    )


def hold(conn: Connection, corpus_ids: Iterable[str]) -> list[str]:
    """Protect corpora from deletion until the transaction ends; return their distinct ids."""
    return uploads.hold(conn, tables.corpus, corpus_ids)


def delete(conn: Connection, reference: str, *, force: bool = False) -> CorpusRow:
    """Delete a corpus, and its text unless another upload shares it; return what was deleted.

    Raises Conflict if an active job or a policy uses it. Without `force` also if a version that an alias points to was
    trained on it.
    """
    row = get(conn, reference)
    uploads.lock(conn, tables.corpus, row.id)
    policy = tables.model_policy.c
    query = sa.select(policy.model).where(policy.corpus == row.id).order_by(policy.model)
    guarded = conn.scalars(query.limit(1)).one_or_none()
    if guarded is not None:
        message = f"Corpus {row.id} is used by the policy of model {guarded}. Change that policy first."
        raise Conflict(message, code="corpus_in_use")
    if not force:
        _refuse_served(conn, row)
    uploads.delete(conn, tables.corpus, tables.job_corpus, row.id)
    return row


def _refuse_served(conn: Connection, row: CorpusRow) -> None:
    """Raise Conflict if a version that an alias points to was trained on a corpus."""
    alias, version = tables.alias, tables.model_version
    query = (
        sa.select(alias.c.model, alias.c.version, alias.c.alias)
        .join(version, sa.and_(version.c.model == alias.c.model, version.c.version == alias.c.version))
        .where(version.c.corpus == row.id)
        .order_by(alias.c.model, alias.c.alias)
    )
    found = conn.execute(query.limit(1)).one_or_none()
    if found is not None:
        raise Conflict(
            f"Version {found.version} of model {found.model}, which is served as {found.alias}, was trained on "
            f"{row}. Repeat with force to delete the corpus anyway.",
            code="corpus_in_use",
        )


def _shared(conn: Connection, sha256: str) -> blobs.Blob | None:
    """Return the blob of a stored text with this digest, held until the transaction ends; None if there is none."""
    corpus, blob = tables.corpus, tables.blob
    holders = sa.select(corpus.c.blob_id).where(corpus.c.sha256 == sha256).order_by(corpus.c.blob_id).limit(1)
    # Pairs with `uploads.delete`: the last corpus of a blob is not deleted meanwhile.
    query = sa.select(blob).where(blob.c.id == holders.scalar_subquery())
    row = conn.execute(query.with_for_update(read=True, key_share=True)).one_or_none() if sha256 else None
    return None if row is None else blobs.Blob(**row._asdict())


def _next_number(conn: Connection, name: str) -> int:
    names = tables.corpus_name
    insert_if_new(conn, names, {"name": name, "last_number": 0})
    query = names.update().where(names.c.name == name).values(last_number=names.c.last_number + 1)
    return int(conn.execute(query.returning(names.c.last_number)).scalar_one())


def _first(conn: Connection, *where: sa.ColumnElement[bool]) -> Row[Any] | None:
    query = sa.select(*_COLUMNS).where(*where).order_by(tables.corpus.c.number.desc()).limit(1)
    return conn.execute(query).one_or_none()


def _missing(conn: Connection, reference: str, numbered: re.Match[str] | None) -> NotFound:
    """Make the error for a corpus that does not exist. It suggests a name that does."""
    corpus = tables.corpus.c
    name = reference if numbered is None else numbered["name"]
    newest = _first(conn, corpus.name == name)
    if newest is not None:
        said = f"There is no corpus {reference}: the newest upload of {name} is {newest.number}."
        return NotFound(said, code="corpus_not_found")
    names = conn.scalars(
        sa.select(corpus.name)
        .group_by(corpus.name)
        .order_by(sa.func.max(corpus.created_at).desc())
        .limit(_SUGGESTED)
    )
    return NotFound(suggest.missing("corpus", reference, names), code="corpus_not_found")


def _make(row: Row[Any]) -> CorpusRow:
    return CorpusRow(**row._asdict())
