"""Export of corpora: as uploaded, or converted to a format and optionally tagged by a model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from tagsmith.app.deps import Runtime
from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.evaluation import tagged_corpus
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.engine import Database


@dataclass(frozen=True, slots=True)
class Export:
    """The requested export: the format to write, its options, and the model that tags the corpus."""

    format: str | None
    model: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, eq=False, slots=True)
class Content:
    """A response body, its media type and its headers."""

    chunks: Iterator[bytes]
    media_type: str
    headers: Mapping[str, str]


async def export(runtime: Runtime, corpus_id: str, asked: Export) -> Content:
    """Export a corpus. Errors are raised before the first byte is sent."""
    served = await runtime.serving.resolve(asked.model) if asked.model is not None else None
    tagger = served.tagger if served else None
    work = partial(_content, runtime.database, runtime.settings, corpus_id, asked, tagger)
    return await anyio.to_thread.run_sync(work, limiter=runtime.upload_threads)


def _content(
    database: Database, settings: Settings, corpus_id: str, asked: Export, tagger: Tagger | None
) -> Content:
    with database.read() as conn:
        row = corpora.get(conn, corpus_id)
        blob_id = corpora.blob_id(conn, row.id)
    if asked.format is None:
        _refuse_options(asked)
        # No transaction is open while a slow client reads.
        text = blobs.stream(database, blob_id)
        headers = {"Content-Length": str(row.size_bytes), "ETag": f'"{row.sha256}"'}
        return Content(text, formats.media_type(row.format), headers)
    options = formats.writing_options(row.format, row.options, asked.format, asked.options)
    limits = {"max_line_bytes": settings.max_line_bytes, "max_text_bytes": settings.max_corpus_bytes}
    corpus = corpora.load(database, row, **limits)
    if tagger is not None:
        corpus = finished(tagged_corpus(tagger, corpus))
    return Content(formats.write(corpus, asked.format, options), formats.media_type(asked.format), {})


def _refuse_options(asked: Export) -> None:
    given = [*asked.options, *(["model"] if asked.model is not None else [])]
    if given:
        reason = "Only with `format` is the corpus written anew. Give a format, or remove this."
        faults = [Fault(reason, parameter=name, type=FaultType.INCONSISTENT) for name in given]
        raise Invalid("The text as it came has no options.", faults, code="invalid_options")
