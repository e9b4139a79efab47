"""Operations on corpora."""

import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio.to_thread

from tagsmith.app.deps import Caller
from tagsmith.app.http.uploads import UNNAMED, Declared, Upload
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.base import stored
from tagsmith.core.corpus.report import report
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.paging import Page


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
    """Read a whole body and store it as a corpus, or raise and store nothing."""
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
                caller.record(conn, location=path_of(made))
            return made

        return await anyio.to_thread.run_sync(store, limiter=threads)


def list_page(database: Database, limit: int, cursor: str | None) -> Page[CorpusRow]:
    """List corpora, newest first."""
    with database.read() as conn:
        return corpora.page(conn, limit, cursor)


def get(database: Database, corpus_id: str) -> CorpusRow:
    """Return one corpus."""
    with database.read() as conn:
        return corpora.get(conn, corpus_id)


def delete(database: Database, corpus_id: str, caller: Caller) -> None:
    """Delete a corpus that no unfinished job needs and no policy names."""
    with database.write() as conn:
        corpora.delete(conn, corpus_id)
        caller.record(conn)


def path_of(corpus: CorpusRow) -> str:
    """Return the path of a corpus."""
    return f"/corpora/{corpus.id}"


def _row(corpus: Corpus, repaired_labels: int, declared: Declared, name: str) -> CorpusRow:
    """Return the row of a corpus with its counts. Storing the text fills in the hash and the size."""
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
