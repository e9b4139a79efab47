"""What can be done with corpora."""

import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio.to_thread

from app.corpora.upload import Declared, Upload
from app.deps import Caller
from core.corpus import formats
from core.corpus.corpus import Corpus
from core.corpus.options import stored
from core.corpus.report import report
from core.settings import Settings
from core.store import corpora
from core.store.corpora import CorpusRow
from core.store.engine import Database
from core.store.ids import new_id
from core.store.paging import Page

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
    caller: Caller,
) -> CorpusRow:
    """Read a body to its end and store it as a corpus, or raise and store nothing."""
    reader = formats.reader(
        declared.format,
        max_line_bytes=settings.max_line_bytes,
        max_text_bytes=settings.max_corpus_bytes,
        options=declared.options,
    )
    limit, spool = settings.max_corpus_bytes, settings.data_dir / "spool"
    with Upload(reader, declared, max_decoded_bytes=limit, spool_dir=spool) as upload:
        await upload.receive(body, threads)

        def store() -> CorpusRow:
            row = _row(upload.finish(), reader.repaired_labels, declared, name or upload.filename or UNNAMED)
            with database.write() as conn:
                made = corpora.insert(conn, row, upload.chunks())
                caller.record(conn, location=location(made))
            return made

        return await anyio.to_thread.run_sync(store, limiter=threads)


def page(database: Database, limit: int, cursor: str | None) -> Page[CorpusRow]:
    """List corpora, newest first."""
    with database.read() as conn:
        return corpora.page(conn, limit, cursor)


def get(database: Database, corpus_id: str) -> CorpusRow:
    """Give one corpus."""
    with database.read() as conn:
        return corpora.get(conn, corpus_id)


def delete(database: Database, corpus_id: str, caller: Caller) -> None:
    """Remove a corpus that no unfinished job needs and no policy names."""
    with database.write() as conn:
        corpora.delete(conn, corpus_id)
        caller.record(conn)


def location(corpus: CorpusRow) -> str:
    """Where a corpus is found."""
    return f"/corpora/{corpus.id}"


def _row(corpus: Corpus, repaired_labels: int, declared: Declared, name: str) -> CorpusRow:
    """What was counted: all of the corpus that storing its text needs."""
    return CorpusRow(
        id=new_id("crp"),
        name=name,
        format=declared.format,
        options=stored(formats.parse_options(declared.format, declared.options)),
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        columns=[column.name for column in corpus.columns],
        labels=corpus.labels.vocabulary.strings() if corpus.labels else [],
        sha256="",
        size_bytes=0,
        report=dataclasses.asdict(report(corpus, repaired_labels)),
        created_at=datetime.now(UTC),
    )
