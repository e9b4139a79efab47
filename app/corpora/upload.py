"""Reading of an uploaded corpus. It is called with limited memory."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

from tagsmith.app.corpora import sentences
from tagsmith.app.http.uploads import UNNAMED, Declared
from tagsmith.app.reading.decoding import Decoding
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.formats.base import stored
from tagsmith.core.corpus.report import report
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.ids import new_id
from tagsmith.wire import CorpusSentence

#: Sentences that an inspection shows.
SAMPLE_SENTENCES = 10


@dataclass(frozen=True, slots=True)
class ReadUpload:
    """What an upload contains. Storing the text fills in number and size of the row."""

    row: CorpusRow
    sample: list[CorpusSentence]


def read_upload(
    files: Sequence[IO[bytes]], declared: Declared, max_line_bytes: int, max_decoded_bytes: int
) -> ReadUpload:
    """Read the body in the first file, and write its decoded text to the second."""
    raw, packed = files
    reader = formats.reader(
        declared.format,
        max_line_bytes=max_line_bytes,
        max_text_bytes=max_decoded_bytes,
        options=declared.options,
    )
    unzip = not formats.is_archive(declared.format)
    decoding = Decoding(
        reader, declared, packed, max_decoded_bytes=max_decoded_bytes, unzip=unzip, lines=unzip
    )
    decoded = decoding.read(raw)
    corpus = decoded.value
    row = CorpusRow(
        id=new_id("crp"),
        name=decoded.filename or UNNAMED,
        format=reader.format,
        options=stored(reader.options),
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        columns=[column.name for column in corpus.columns],
        labels=corpus.label_names,
        sha256=decoded.sha256,
        size_bytes=0,
        report=dataclasses.asdict(report(corpus, reader.repaired_labels)),
        created_at=datetime.now(UTC),
    )
    return ReadUpload(row, sentences.sample(corpus, SAMPLE_SENTENCES))
