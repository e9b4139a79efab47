"""`brat`: brat stand-off annotation. A zip file with pairs `name.txt` and `name.ann`; labels are in IOB2.

`tagsmith.core.corpus.text` splits the texts into tokens and sentences. The default is the first version of `words`: its
tokens are small, so that annotations rarely cut one, and a line is a sentence.
(https://brat.nlplab.org/standoff.html)
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from tempfile import SpooledTemporaryFile
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator, Field

from tagsmith.core.base.arrays import Ids, Places, numbered
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.archive import ZIP_MAGIC, Archive, Member, MemberError
from tagsmith.core.corpus.formats.base import Format, Limits, Options, split_names
from tagsmith.core.corpus.formats.lines import MAX_FAULTS, empty_corpus, invalid_corpus
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.writing import TextColumn, batches, unwritable
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of
from tagsmith.core.corpus.labels.chunks import Chunks
from tagsmith.core.corpus.text.kinds import code_points
from tagsmith.core.corpus.text.tokenizer import TextTokens, Tokenizer
from tagsmith.core.corpus.vocabulary import Vocabulary

Conflicts = Literal["refuse", "resolve"]
TokenRule = Literal["words", "blanks"]

#: A zip file is read from its end, so it is kept until it is complete: up to this size in memory, else on disk.
_SPOOL_BYTES = 1 << 20

#: First characters of the lines to ignore: relations, events, attributes, normalisations, notes.
_IGNORED = frozenset("REAMN*#")

_ENTITY = re.compile(r"(T[^\t]*)\t([^\t ]+) (\d{1,9}) (\d{1,9})((?:;\d{1,9} \d{1,9})*)\t(.*)")
#: Start and stop of an annotation.
_SPAN = itemgetter(0, 1)

# Whether an annotation is valid, and if not, why.
_VALID, _NO_TOKEN, _CROSSES_LINE, _CUTS_TOKEN = range(4)
_REASONS = (
    "",
    "contains no token",
    "crosses the end of a line of text",
    "begins or ends inside a token; conflicts=resolve extends it to the whole token",
)


class _Annotation(NamedTuple):
    """Characters `start` to `stop` - 1 are an entity; `line` is its line in the .ann file."""

    start: int
    stop: int
    type: str
    name: str
    line: int


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
        self._pool = empty_pool(1)
        self._names = {"O": 0}  # label to id
        self._ids: list[Ids] = []
        self._labels: list[Ids] = []
        self._ends: list[Places] = []
        self._count = 0
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
        if not self._count:
            raise empty_corpus()
        return self._corpus()

    def _corpus(self) -> Corpus:
        column = Column("0", vocabulary_of(self._pool, 0), np.concatenate(self._ids))
        offsets = np.concatenate([np.zeros(1, np.int64), *self._ends])
        if not self._labelled:
            return Corpus((column,), None, offsets, tokenizer=self._tokenizer)
        found, ids = numbered(np.concatenate(self._labels))
        names = list(self._names)
        vocabulary = Vocabulary.from_strings([names[code] for code in found.tolist()])
        return Corpus((column,), Column("label", vocabulary, ids), offsets, tokenizer=self._tokenizer)

    def _document(self, text_member: Member, annotation_member: Member | None) -> None:
        try:
            text = text_member.text()
            annotations = annotation_member.text() if annotation_member else ""
        except MemberError as error:
            self._fault(error.fault)
            return
        tokens = self._tokenizer.split(text)
        spans: list[tuple[int, int, str]] = []
        if annotation_member is not None and self._labelled:
            found = self._annotations(annotation_member.name, annotations, text)
            tokens = _undivided(text, tokens, found)
            spans = self._spans(annotation_member.name, found, tokens)
        if not self._faults:
            self._keep(text, tokens, spans)

    def _keep(self, text: str, tokens: TextTokens, spans: Iterable[tuple[int, int, str]]) -> None:
        encoded = np.frombuffer(text.encode(), np.uint8)
        offsets = _byte_offsets(text)
        self._pool, ids = intern(self._pool, encoded, offsets[tokens.starts], offsets[tokens.stops], 1)
        self._ids.append(ids)
        self._ends.append(tokens.ends + self._count)
        self._count += ids.size
        labels = np.zeros(ids.size, np.int32)
        for first, last, kind in spans:
            labels[first] = self._names.setdefault(f"B-{kind}", len(self._names))
            if last > first + 1:
                labels[first + 1 : last] = self._names.setdefault(f"I-{kind}", len(self._names))
        self._labels.append(labels)

    def _annotations(self, name: str, content: str, text: str) -> list[_Annotation]:
        """Return the text-bound annotations of one .ann file, sorted by position."""
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
        found.sort(key=_SPAN)
        return found

    def _annotation(self, line: str, number: int, text: str) -> _Annotation | None:
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
        return _Annotation(start, stop, kind, name, number)

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

    def _spans(
        self, name: str, found: Sequence[_Annotation], tokens: TextTokens
    ) -> list[tuple[int, int, str]]:
        """Return (first token, token after the last, type) of each valid annotation, in order."""
        spans: list[tuple[int, int, _Annotation]] = []
        for each, first, last, reason in self._aligned(found, tokens):
            if reason:
                self._fault(Fault(f"{name}: {each.name}: {reason}", line=each.line))
                continue
            if spans and first < spans[-1][1]:
                before = spans[-1]
                if not self._resolve:
                    overlap = (
                        f"{each.name}: overlaps {before[2].name}; conflicts=resolve keeps the longer one"
                    )
                    self._fault(Fault(f"{name}: {overlap}", line=each.line))
                    continue
                if last - first <= before[1] - before[0]:
                    continue
                spans.pop()
            spans.append((first, last, each))
        return [(first, last, each.type) for first, last, each in spans]

    def _aligned(
        self, found: Sequence[_Annotation], tokens: TextTokens
    ) -> Iterator[tuple[_Annotation, int, int, str]]:
        """Yield (annotation, its first token, the token after its last, why it is invalid or "")."""
        starts, stops = np.array([each[:2] for each in found], np.int64).reshape(-1, 2).T
        first = np.searchsorted(tokens.stops, starts, "right")
        last = np.searchsorted(tokens.starts, stops, "left")
        reasons = np.where(first < last, _VALID, _NO_TOKEN)
        some = np.flatnonzero(first < last)
        a, b = first[some], last[some]
        if not self._resolve:
            cut = (tokens.starts[a] < starts[some]) | (tokens.stops[b - 1] > stops[some])
            reasons[some[cut]] = _CUTS_TOKEN
        reasons[some[b > tokens.ends[np.searchsorted(tokens.ends, a, "right")]]] = _CROSSES_LINE
        texts = [_REASONS[reason] for reason in reasons.tolist()]
        return zip(found, first.tolist(), last.tolist(), texts, strict=True)

    def _fault(self, fault: Fault) -> None:
        self._faults.append(fault)
        if len(self._faults) >= MAX_FAULTS:
            raise invalid_corpus("place", self._faults)


def _undivided(text: str, tokens: TextTokens, found: Sequence[_Annotation]) -> TextTokens:
    """Return the tokens without sentence ends inside an annotation, such as after `Yahoo!`, except at line breaks."""
    kept = np.ones(tokens.ends.size, np.bool_)
    for each in found:
        first = int(np.searchsorted(tokens.stops, each.start, "right"))
        last = int(np.searchsorted(tokens.starts, each.stop, "left"))
        inner = slice(*np.searchsorted(tokens.ends, [first + 1, last]).tolist())
        if inner.start < inner.stop and not text[each.start : each.stop].splitlines()[1:]:
            kept[inner] = False
    return TextTokens(tokens.starts, tokens.stops, tokens.ends[kept])


def _byte_offsets(text: str) -> Places:
    """(characters + 1,): where each character begins in UTF-8."""
    points = code_points(text)
    offsets = np.zeros(points.size + 1, np.int64)
    np.cumsum(1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000), out=offsets[1:])
    return offsets


#: The type of an annotation for a chunk without a type.
UNTYPED = "Span"

#: The earliest time of a zip file. A fixed time gives the same bytes for the same corpus.
_MEMBER_TIME = (1980, 1, 1, 0, 0, 0)


def write_brat(corpus: Corpus) -> Iterator[bytes]:
    """Write a zip file in chunks. A sentence is a line of tokens with spaces between them; chunks are annotations."""
    tokens = corpus.columns[0]
    if corpus.labels is None:
        raise Invalid(
            "The corpus has no labels to write as annotations. Label it first.",
            [Fault("The corpus has no labels.")],
            code="not_labelled",
        )
    strings = tokens.vocabulary.strings()
    for string in strings:
        if not string or any(c < " " or c == "\x7f" for c in string):
            raise unwritable("a text of brat", tokens.name, string)
    chunks = Chunks.of(corpus.labels.vocabulary.strings(), corpus.labels.ids, corpus.offsets)
    for name in chunks.type_names:
        if any(c <= " " for c in name):
            raise unwritable("a type of brat", corpus.labels.name, name)
    types = [name or UNTYPED for name in chunks.type_names]
    columns: list[TextColumn] = [
        (strings, tokens.ids),
        # Whether the token begins a chunk, whether it ends one, and the type of the chunk.
        (["", "first"], chunks.first.astype(np.int32)),
        (["", "last"], chunks.last.astype(np.int32)),
        (types, chunks.types.astype(np.int32)),
    ]
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
    tokens, firsts, lasts, types = cells
    text = "".join(" ".join(tokens[a:b]) + "\n" for a, b in cuts if b > a)
    # One character follows each token: a space or a newline.
    starts = [0, *accumulate(len(token) + 1 for token in tokens)]
    begin = [index for index, first in enumerate(firsts) if first]
    end = [index for index, last in enumerate(lasts) if last]
    lines = []
    for number, (first, last) in enumerate(zip(begin, end, strict=True), start=1):
        start, stop = starts[first], starts[last] + len(tokens[last])
        lines.append(f"T{number}\t{types[first]} {start} {stop}\t{text[start:stop]}\n")
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
