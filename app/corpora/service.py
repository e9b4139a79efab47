"""Operations on corpora."""

import dataclasses
from collections.abc import AsyncIterator

from fastapi.concurrency import run_in_threadpool

from tagsmith.app.corpora import exports, sentences
from tagsmith.app.corpora.exports import Content, Export
from tagsmith.app.corpora.sentences import SentenceQuery
from tagsmith.app.corpora.upload import ReadUpload, read_upload
from tagsmith.app.deps import Caller, Runtime
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.http.uploads import Declared
from tagsmith.app.reading.decoding import unpacked
from tagsmith.app.reading.uploads import Received
from tagsmith.core.corpus.labels import partial as partial_labels
from tagsmith.core.evaluate.labels import one_label
from tagsmith.core.store import corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.paging import Page
from tagsmith.wire import CorpusInfo, CorpusInspection, CorpusSentence, CorpusStatistics

#: Fields of a corpus that an inspection shows.
_INSPECTED = ("format", "options", "sentences", "tokens", "columns", "labels")
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
    uploads = runtime.uploads
    async with uploads.received(body) as received:
        row = (await _read(received, declared, runtime)).row
        row = dataclasses.replace(row, name=(name or row.name)[:MAX_NAME])

        def store() -> ChangeResponse[CorpusInfo]:
            with runtime.database.write() as conn:
                made = corpora.insert(conn, row, unpacked(received.packed))
                response = ChangeResponse(CorpusInfo.model_validate(made), location=path_of(made))
                return caller.respond(conn, response)

        return await uploads.in_thread(store)


async def inspect(body: AsyncIterator[bytes], declared: Declared, runtime: Runtime) -> CorpusInspection:
    """Read a whole body and describe what an upload would store. Nothing is stored."""
    async with runtime.uploads.received(body) as received:
        read = await _read(received, declared, runtime)
    return CorpusInspection(
        **{name: getattr(read.row, name) for name in _INSPECTED},
        report=CorpusStatistics.model_validate(read.row.report),
        sample=read.sample,
        warnings=warnings_of(read.row),
    )


async def _read(received: Received, declared: Declared, runtime: Runtime) -> ReadUpload:
    limits = runtime.settings
    return await runtime.uploads.read(
        received, read_upload, declared, limits.max_line_bytes, max_decoded_bytes=limits.max_corpus_bytes
    )


async def sentence_page(runtime: Runtime, corpus_id: str, query: SentenceQuery) -> Page[CorpusSentence]:
    """List sentences of a corpus."""
    row = await run_in_threadpool(get, runtime.database, corpus_id)
    return await sentences.page(runtime.texts, row, query)


async def export(runtime: Runtime, corpus_id: str, asked: Export) -> Content:
    """Return the content of a corpus. Errors are raised before the first byte is sent."""
    row = await run_in_threadpool(get, runtime.database, corpus_id)
    if asked.format is None:
        return await run_in_threadpool(exports.as_uploaded, runtime.database, row, asked)
    return await exports.converted(runtime.texts, runtime.serving, row, asked)


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
    if not row.labelled:
        found.append("The text has no labels: it can be tagged, not trained on.")
    elif len(row.labels) > MANY_LABELS and len(row.labels) > row.tokens * MANY_LABELS_SHARE:
        found.append(
            f"There are {len(row.labels)} labels for {row.tokens} tokens. Are the labels in the last column?"
        )
    elif (single := one_label(row.labels)) is not None:
        found.append(single)
    if partial_labels.ANY in row.labels:
        found.append(
            f"Some labels are {partial_labels.ANY}. If these tokens have no label, upload with the option partial=true."
        )
    if row.report["bio_fault_count"]:
        found.append(
            f"Labels that break the coding {row.report['label_scheme']}: {row.report['bio_fault_count']}. "
            "Correct them, or upload with the option repair=true."
        )
    if row.sentences == 1 and row.tokens > LONG_SENTENCE:
        found.append(f"All {row.tokens} tokens are one sentence. Blank lines separate sentences.")
    if row.report["conflicting_sentences"] > row.sentences * MANY_CONFLICTS:
        others = "trees" if row.trees else "labels"
        found.append(
            f"{row.report['conflicting_sentences']} of {row.sentences} sentences occur again with other {others}."
        )
    return found
