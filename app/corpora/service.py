"""What can be done with corpora."""

import dataclasses
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import anyio.to_thread

from app.corpora.upload import Declared, Upload
from core.corpus import formats
from core.corpus.options import stored
from core.corpus.report import report
from core.errors import Unavailable
from core.settings import Settings
from core.store import blobs, corpora
from core.store.corpora import CorpusRow
from core.store.engine import Database
from core.store.ids import new_id
from core.store.paging import Page

#: A thread hop costs some 50 us; a batch of this size takes milliseconds to parse and is little memory.
BATCH_BYTES = 1 << 20

#: What a corpus is called when neither the query nor a file name says.
UNNAMED = "unnamed"


async def create(
    body: AsyncIterator[bytes],
    declared: Declared,
    name: str | None,
    *,
    settings: Settings,
    database: Database,
    threads: anyio.CapacityLimiter,
) -> CorpusRow:
    """Read a body to its end and store it as a corpus, or raise and store nothing."""
    with Upload(declared, settings, settings.data_dir / "spool") as upload:
        async for batch in _batches(body):
            await anyio.to_thread.run_sync(_feed, upload, batch, limiter=threads)
        return await anyio.to_thread.run_sync(_store, upload, declared, name, database, limiter=threads)


def page(database: Database, limit: int, cursor: str | None) -> Page[CorpusRow]:
    """List corpora, newest first."""
    with database.read() as conn:
        return corpora.page(conn, limit, cursor)


def get(database: Database, corpus_id: str) -> CorpusRow:
    """Give one corpus."""
    with database.read() as conn:
        return corpora.get(conn, corpus_id)


def content(database: Database, corpus_id: str) -> tuple[CorpusRow, Iterator[bytes]]:
    """Give a corpus and its text, with no transaction open while a slow client reads."""
    with database.read() as conn:
        row = corpora.get(conn, corpus_id)
        blob_id = corpora.blob_id(conn, corpus_id)
    return row, blobs.stream(database, blob_id)


def delete(database: Database, corpus_id: str) -> None:
    """Remove a corpus that no unfinished job needs."""
    with database.write() as conn:
        corpora.delete(conn, corpus_id)


async def _batches(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pending = bytearray()
    async for chunk in body:
        pending += chunk
        if len(pending) >= BATCH_BYTES:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)


def _feed(upload: Upload, batch: bytes) -> None:
    try:
        upload.feed(batch)
    except OSError as error:
        raise Unavailable(
            f"The upload cannot be kept: {error.strerror}.", code="storage_unavailable"
        ) from error


def _store(upload: Upload, declared: Declared, name: str | None, database: Database) -> CorpusRow:
    corpus = upload.finish()
    row = CorpusRow(
        id=new_id("crp"),
        name=name or upload.filename or UNNAMED,
        format=declared.format,
        options=stored(formats.parse_options(declared.format, declared.options)),
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        columns=[column.name for column in corpus.columns],
        labels=corpus.labels.vocabulary.strings() if corpus.labels else [],
        sha256="",
        size_bytes=0,
        report=dataclasses.asdict(report(corpus, upload.repaired_labels)),
        created_at=datetime.now(UTC),
    )
    del corpus  # the transaction needs only what was counted
    with database.write() as conn:
        return corpora.insert(conn, row, upload.chunks())
