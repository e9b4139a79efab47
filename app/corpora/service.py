"""Operations on corpora."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TypeVar

import anyio.to_thread

from tagsmith.app.corpora import sentences
from tagsmith.app.deps import Caller, Runtime
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.uploads import UNNAMED, Declared, Upload
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.base import stored
from tagsmith.core.corpus.formats.registry import CorpusReader
from tagsmith.core.corpus.report import report
from tagsmith.core.evaluate.labels import one_label
from tagsmith.core.store import corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.paging import Page
from tagsmith.wire import CorpusInfo, CorpusInspection, CorpusStatistics

T = TypeVar("T")

#: Fields of a corpus that an inspection shows.
_INSPECTED = ("format", "options", "sentences", "tokens", "columns", "labels")
#: Sentences that an inspection shows.
SAMPLE_SENTENCES = 10
#: More labels than this, and more than this share of the tokens, are probably words. The largest label sets of parts of
#: speech have about a thousand labels in a million tokens.
MANY_LABELS, MANY_LABELS_SHARE = 100, 0.1
#: A few sentences with other labels elsewhere are normal, such as single punctuation marks.
MANY_CONFLICTS = 0.05
#: Sentences of more tokens are rare.
LONG_SENTENCE = 500

#: As long as a name in the query may be. The file names of multipart bodies have no limit of their own.
MAX_NAME = 200


async def create(
    body: AsyncIterator[bytes], declared: Declared, name: str | None, runtime: Runtime, caller: Caller
) -> ChangeResponse[CorpusInfo]:
    """Read a whole body and store it as a corpus, or raise and store nothing."""

    def store(upload: Upload[Corpus], reader: CorpusReader) -> ChangeResponse[CorpusInfo]:
        corpus = upload.finish()
        row = _row(corpus, reader, name or (upload.filename or UNNAMED)[:MAX_NAME], upload.sha256)
        with runtime.database.write() as conn:
            made = corpora.insert(conn, row, upload.chunks())
            response = ChangeResponse(CorpusInfo.model_validate(made), location=path_of(made))
            return caller.respond(conn, response)

    return await _received(body, declared, runtime, store)


async def inspect(body: AsyncIterator[bytes], declared: Declared, runtime: Runtime) -> CorpusInspection:
    """Read a whole body and describe what an upload would store. Nothing is stored."""

    def describe(upload: Upload[Corpus], reader: CorpusReader) -> CorpusInspection:
        corpus = upload.finish()
        row = _row(corpus, reader, UNNAMED, upload.sha256)
        return CorpusInspection(
            **{name: getattr(row, name) for name in _INSPECTED},
            report=CorpusStatistics.model_validate(row.report),
            sample=sentences.sample(corpus, SAMPLE_SENTENCES),
            warnings=warnings_of(row),
        )

    return await _received(body, declared, runtime, describe)


async def _received(
    body: AsyncIterator[bytes],
    declared: Declared,
    runtime: Runtime,
    use: Callable[[Upload[Corpus], CorpusReader], T],
) -> T:
    """Read a whole body, then call `use` in a thread."""
    settings, threads = runtime.settings, runtime.upload_threads
    reader = formats.reader(
        declared.format,
        max_line_bytes=settings.max_line_bytes,
        max_text_bytes=settings.max_corpus_bytes,
        options=declared.options,
    )
    limit, spool = settings.max_corpus_bytes, settings.data_dir / "spool"
    unzip = not formats.is_archive(declared.format)
    with Upload(
        reader, declared, max_decoded_bytes=limit, spool_dir=spool, unzip=unzip, lines=unzip
    ) as upload:
        await upload.receive(body, threads)
        return await anyio.to_thread.run_sync(use, upload, reader, limiter=threads)


def list_page(database: Database, limit: int, cursor: str | None, name: str | None) -> Page[CorpusRow]:
    """List corpora, newest first."""
    with database.read() as conn:
        return corpora.page(conn, limit, cursor, name=name)


def get(database: Database, corpus_id: str) -> CorpusRow:
    """Return one corpus, by its id, its name or `name:2`."""
    with database.read() as conn:
        return corpora.get(conn, corpus_id)


def delete(database: Database, corpus_id: str, caller: Caller, *, force: bool) -> None:
    """Delete a corpus that no unfinished job needs and no policy names."""
    with database.write() as conn:
        gone = corpora.delete(conn, corpus_id, force=force)
        # The path may be a name, which means another upload from now on.
        notes = ["forced"] if force else []
        notes += [] if corpus_id == gone.id else [f"deleted {gone.id} ({gone})"]
        caller.record(conn, note=", ".join(notes) or None)


def path_of(corpus: CorpusRow) -> str:
    """Return the path of a corpus."""
    return f"/corpora/{corpus.id}"


def warnings_of(row: CorpusRow) -> list[str]:
    """List what is probably not as intended."""
    found = []
    if not row.labels:
        found.append("The text has no labels: it can be tagged, not trained on.")
    elif len(row.labels) > MANY_LABELS and len(row.labels) > row.tokens * MANY_LABELS_SHARE:
        found.append(
            f"There are {len(row.labels)} labels for {row.tokens} tokens. Are the labels in the last column?"
        )
    elif (single := one_label(row.labels)) is not None:
        found.append(single)
    if row.report["bio_fault_count"]:
        found.append(
            f"Labels that break the coding {row.report['label_scheme']}: {row.report['bio_fault_count']}. "
            "Correct them, or upload with the option repair=true."
        )
    if row.sentences == 1 and row.tokens > LONG_SENTENCE:
        found.append(f"All {row.tokens} tokens are one sentence. Blank lines separate sentences.")
    if row.report["conflicting_sentences"] > row.sentences * MANY_CONFLICTS:
        found.append(
            f"{row.report['conflicting_sentences']} of {row.sentences} sentences occur again with other labels."
        )
    return found


def _row(corpus: Corpus, reader: CorpusReader, name: str, sha256: str) -> CorpusRow:
    """Return the row of a corpus with its counts. Storing the text fills in the number and the size."""
    return CorpusRow(
        id=new_id("crp"),
        name=name,
        format=reader.format,
        options=stored(reader.options),
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        columns=[column.name for column in corpus.columns],
        labels=corpus.labels.vocabulary.strings() if corpus.labels else [],
        sha256=sha256,
        size_bytes=0,
        report=dataclasses.asdict(report(corpus, reader.repaired_labels)),
        created_at=datetime.now(UTC),
    )
