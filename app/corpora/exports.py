"""Export of corpora: as uploaded, or converted to a format and optionally tagged by a model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tagsmith.app.reading.stored import StoredText, StoredTexts, corpus_of
from tagsmith.app.reading.uploads import BATCH_BYTES
from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.pipeline.evaluation import tagged_corpus
from tagsmith.core.store import blobs, corpora
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database

if TYPE_CHECKING:  # the process that reads uploads does without it
    from tagsmith.app.tagging.serving import Serving


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


def as_uploaded(database: Database, row: CorpusRow, asked: Export) -> Content:
    """Return the text of a corpus as it came."""
    _refuse_options(asked)
    with database.read() as conn:
        blob_id = corpora.blob_id(conn, row.id)
    # No transaction is open while a slow client reads.
    text = blobs.stream(database, blob_id)
    headers = {"Content-Length": str(row.size_bytes), "ETag": f'"{row.sha256}"'}
    return Content(text, formats.media_type(row.format), headers)


async def converted(texts: StoredTexts, serving: "Serving", row: CorpusRow, asked: Export) -> Content:
    """Write a corpus in another format. Errors are raised before the first byte is sent."""
    assert asked.format is not None
    options = formats.writing_options(row.format, row.options, asked.format, asked.options)
    with ExitStack() as files:
        target = files.enter_context(texts.uploads.file())
        model: tuple[IO[bytes], ...] = ()
        sha256 = None
        if asked.model is not None:
            model_file, sha256 = await serving.open_file(asked.model)
            model = (files.enter_context(model_file),)
        await texts.call(row, _write, asked.format, options, sha256, files=(target, *model))
        target.seek(0)
        return Content(_chunks(target, files.pop_all()), formats.media_type(asked.format), {})


def _write(
    files: Sequence[IO[bytes]],
    source: StoredText,
    format: str,  # noqa: A002
    options: Mapping[str, object],
    model_sha256: str | None,
) -> None:
    text, target, *model = files
    corpus = corpus_of(text, source)
    if model:
        tagger = Tagger.open(Path(f"/dev/fd/{model[0].fileno()}"), model_sha256)
        corpus = finished(tagged_corpus(tagger, corpus))
    target.seek(0)
    target.truncate()  # what an interrupted attempt has written
    target.writelines(formats.write(corpus, format, options))
    target.flush()


def _chunks(file: IO[bytes], files: ExitStack) -> Iterator[bytes]:
    with files:
        while chunk := file.read(BATCH_BYTES):
            yield chunk


def _refuse_options(asked: Export) -> None:
    given = [*asked.options, *(["model"] if asked.model is not None else [])]
    if given:
        reason = "Only with `format` is the corpus written anew. Give a format, or remove this."
        faults = [Fault(reason, parameter=name, type=FaultType.INCONSISTENT) for name in given]
        raise Invalid("The text as it came has no options.", faults, code="invalid_options")
