"""`brat`: brat stand-off annotation. A zip file with pairs `name.txt` and `name.ann`; labels are in IOB2.

`tagsmith.core.corpus.text` splits the texts into tokens and sentences. The default is the first version of `words`: its
tokens are small, so that annotations rarely cut one, and a line is a sentence.
(https://brat.nlplab.org/standoff.html)
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from tempfile import SpooledTemporaryFile
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from tagsmith.core.base.errors import Fault
from tagsmith.core.corpus.archive import ZIP_MAGIC, Archive, Member, MemberError
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options, split_names
from tagsmith.core.corpus.formats.lines import MAX_FAULTS, empty_corpus, invalid_corpus
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.writing import (
    TextColumn,
    batches,
    unwritable,
    written_columns,
    written_text,
)
from tagsmith.core.corpus.text.placement import CharacterSpan, Conflicts, LabelledTexts, TokenSpan, place
from tagsmith.core.corpus.text.tokenizer import Tokenizer

TokenRule = Literal["words", "blanks"]

#: A zip file is read from its end, so it is kept until it is complete: up to this size in memory, else on disk.
_SPOOL_BYTES = 1 << 20

#: First characters of the lines to ignore: relations, events, attributes, normalisations, notes.
_IGNORED = frozenset("REAMN*#")

_ENTITY = re.compile(r"(T[^\t]*)\t([^\t ]+) (\d{1,9}) (\d{1,9})((?:;\d{1,9} \d{1,9})*)\t(.*)")
#: The tokenizer of texts unless the options name one.
DEFAULT = Tokenizer("words", 1)


class BratReader:
    """Call `feed()` with the bytes of the zip file, then `finish()`. Raises `Invalid` with files and lines."""

    def __init__(
        self,
        *,
        max_text_bytes: int,
        labelled: bool = True,
        tokenizer: Tokenizer = DEFAULT,
        conflicts: Conflicts = "refuse",
        types: Sequence[str] = (),
    ) -> None:
        self._max_text_bytes = max_text_bytes
        self._labelled = labelled
        self._tokenizer = tokenizer
        self._resolve = conflicts == "resolve"
        self._types = frozenset(types)
        self._spool = SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115  # closed by finish
        self._texts = LabelledTexts(tokenizer, labelled=labelled)
        self._faults: list[Fault] = []

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._spool.write(chunk)

    def finish(self) -> Corpus:
        """Return the corpus of all documents, in the order of their texts in the archive."""
        with self._spool, Archive(self._spool, self._max_text_bytes) as archive:
            for text, annotations in archive.pairs((".txt", ".ann"), required=self._labelled):
                self._document(text, annotations)
        if self._faults:
            raise invalid_corpus("place", self._faults)
        if not self._texts.tokens:
            raise empty_corpus()
        return self._texts.corpus()

    def _document(self, text_member: Member, annotation_member: Member | None) -> None:
        try:
            text = text_member.text()
            annotations = annotation_member.text() if annotation_member else ""
        except MemberError as error:
            self._fault(error.fault)
            return
        tokens = self._tokenizer.split(text)
        spans: list[TokenSpan] = []
        if annotation_member is not None and self._labelled:
            name = annotation_member.name
            found = self._annotations(name, annotations, text)
            tokens, spans, wrong = place(text, tokens, found, resolve=self._resolve)
            for span, reason in wrong:
                self._fault(Fault(f"{name}: {span.name}: {reason}", line=span.line))
        if not self._faults:
            self._texts.add(text, tokens, spans)

    def _annotations(self, name: str, content: str, text: str) -> list[CharacterSpan]:
        """Return the text-bound annotations of one .ann file."""
        found = []
        for number, ended in enumerate(content.split("\n"), start=1):
            line = ended.removesuffix("\r")
            if not line or line[0] in _IGNORED:
                continue
            try:
                annotation = self._annotation(line, number, text)
            except ValueError as error:
                self._fault(Fault(f"{name}: {error}", line=number))
                continue
            if annotation is not None:
                found.append(annotation)
        return found

    def _annotation(self, line: str, number: int, text: str) -> CharacterSpan | None:
        match = _ENTITY.fullmatch(line)
        if match is None:
            raise ValueError("This is not an annotation. Write T1, tab, Type 0 5, tab, text.")
        name, kind, first, last, more, quoted = match.groups()
        if self._types and kind not in self._types:
            return None
        start, stop = int(first), int(last)
        # Nearly all annotations have one part, equal to the text. Lengths are compared first, here and below: slices
        # for many wrong lines would take quadratic time.
        if more or stop - start != len(quoted) or not quoted or text[start:stop] != quoted:
            start, stop = self._span_of_parts(name, f"{first} {last}{more}", quoted, text)
        return CharacterSpan(start, stop, kind, name, number)

    def _span_of_parts(self, name: str, spans: str, quoted: str, text: str) -> tuple[int, int]:
        """Return the start and stop of an annotation with any number of parts; raises ValueError if it is wrong."""
        parts = [tuple(map(int, part.split(" "))) for part in spans.split(";")]
        for start, stop in parts:
            if not start < stop <= len(text):
                raise ValueError(f"{name}: {start} {stop} is outside the text of {len(text)} characters")
        if any(after[0] < before[1] for before, after in pairwise(parts)):
            raise ValueError(f"{name}: its parts are out of order")
        length = sum(stop - start for start, stop in parts) + len(parts) - 1
        if (
            length != len(quoted)
            or " ".join(text[start:stop] for start, stop in parts).replace("\n", " ") != quoted
        ):
            raise ValueError(f"{name}: the text at {spans} differs from the text of the annotation")
        if len(parts) > 1 and not self._resolve:
            raise ValueError(
                f"{name}: has gaps; conflicts=resolve reads it from its first to its last character"
            )
        return parts[0][0], parts[-1][1]

    def _fault(self, fault: Fault) -> None:
        self._faults.append(fault)
        if len(self._faults) >= MAX_FAULTS:
            raise invalid_corpus("place", self._faults)


#: The earliest time of a zip file. A fixed time gives the same bytes for the same corpus.
_MEMBER_TIME = (1980, 1, 1, 0, 0, 0)


def write_brat(corpus: Corpus) -> Iterator[bytes]:
    """Write a zip file in chunks. A sentence is a line of tokens with spaces between them; chunks are annotations."""
    columns = written_columns(corpus, "brat")
    for name in columns[-1][0]:
        if any(c <= " " for c in name):
            raise unwritable("a type of brat", "label", name)
    return _archive(columns, corpus.offsets.tolist())


class _Sink:
    """The file that a zip is written to; its content can be taken while it grows."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes, /) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Nothing is buffered elsewhere."""

    def close(self) -> None:
        """There is nothing to close."""

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def _archive(columns: list[TextColumn], bounds: list[int]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as out:
        for number, (cells, cuts) in enumerate(batches(columns, bounds), start=1):
            text, annotations = _document(cells, cuts)
            for suffix, content in ((".txt", text), (".ann", annotations)):
                info = zipfile.ZipInfo(f"part-{number:05}{suffix}", _MEMBER_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                out.writestr(info, content)
                yield sink.take()
    yield sink.take()


def _document(cells: list[list[str]], cuts: list[tuple[int, int]]) -> tuple[str, str]:
    """Return (text, annotations) of a batch of sentences."""
    text, spans = written_text(cells, cuts)
    lines = [
        f"T{number}\t{kind} {start} {stop}\t{text[start:stop]}\n"
        for number, (start, stop, kind) in enumerate(spans, start=1)
    ]
    return text, "".join(lines)


class BratOptions(Options):
    """How texts are split into tokens, and which annotations are read."""

    tokens: TokenRule = Field(
        default="words",
        description="How text is split into tokens unless `tokenizer` is given: `words` (runs of letters, digits and "
        "combining marks, and other single characters) or `blanks` (at blanks). Each line is a sentence.",
    )
    conflicts: Conflicts = Field(
        default="refuse",
        description="What to do with annotations that overlap, have gaps or cut a token: `refuse`, or `resolve` (keep "
        "the longest, fill gaps, extend to whole tokens).",
    )
    types: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=(), description="Types of annotations to read. By default all."
    )


def _reader(options: BratOptions, limits: Limits) -> BratReader:
    return BratReader(
        max_text_bytes=limits.max_text_bytes,
        labelled=options.labelled,
        tokenizer=options.tokenizer or Tokenizer(options.tokens, 1),
        conflicts=options.conflicts,
        types=options.types,
    )


def _writer(corpus: Corpus, _: BratOptions) -> Iterator[bytes]:
    return write_brat(corpus)


def _recognises(head: Head) -> bool:
    """A zip file: one that only compresses a text has been unpacked before."""
    return head.data.startswith(ZIP_MAGIC)


FORMAT = Format(
    name="brat",
    options=BratOptions,
    reader=_reader,
    writer=_writer,
    media_type="application/zip",
    recognises=_recognises,
    order=6,
)
