"""Read brat stand-off: a zip of pairs `name.txt` and `name.ann`; tokens of the texts, labels in IOB2.

A line of text is a sentence; what a token is, `core.corpus.tokens` says.
(https://brat.nlplab.org/standoff.html)
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from tempfile import SpooledTemporaryFile
from typing import Literal, NamedTuple

import numpy as np

from core.corpus.archive import Archive, FaultyMember, Member
from core.corpus.arrays import Ids, Places, numbered
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.corpus.lines import MAX_FAULTS, empty_corpus
from core.corpus.tokens import TextTokens, Tokens, points_of, tokens_of
from core.corpus.vocabulary import Vocabulary
from core.errors import Fault, Invalid

Conflicts = Literal["refuse", "resolve"]

#: An upload up to this size is kept in memory, a larger one on disk, until its end: a zip is read from there.
_SPOOL_BYTES = 1 << 20

#: The lines of an .ann file that are no text-bound annotations: relations, events, attributes, normalisations, notes.
_IGNORED = frozenset("REAMN*#")

_ENTITY = re.compile(r"(T[^\t]*)\t([^\t ]+) (\d{1,9}) (\d{1,9})((?:;\d{1,9} \d{1,9})*)\t(.*)")
#: Start and stop of an annotation.
_PLACE = itemgetter(0, 1)


# Why an annotation cannot stand.
_STANDS, _NO_TOKEN, _BEYOND, _CUT = range(4)
_REASONS = (
    "",
    "has no token",
    "goes beyond its line of text",
    "begins or ends inside a token; conflicts=resolve takes the whole token",
)


class _Annotation(NamedTuple):
    """Characters `start` to `stop` - 1 are an entity; `line` is where the .ann file says so."""

    start: int
    stop: int
    type: str
    name: str
    line: int


class BratReader:
    """Feed it the bytes of the zip; `finish()` reads it. Raises `Invalid` with members and lines at fault."""

    def __init__(
        self,
        *,
        max_text_bytes: int,
        labelled: bool = True,
        tokens: Tokens = "words",
        conflicts: Conflicts = "refuse",
        types: Sequence[str] = (),
    ) -> None:
        self._max_text_bytes = max_text_bytes
        self._labelled = labelled
        self._tokens = tokens
        self._resolve = conflicts == "resolve"
        self._types = frozenset(types)
        self._spool = SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115  # closed by finish
        self._pool = empty_pool(1)
        self._names = {"O": 0}  # labels met, with a number each
        self._ids: list[Ids] = []
        self._labels: list[Ids] = []
        self._ends: list[Places] = []
        self._count = 0
        self._faults: list[Fault] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._spool.write(chunk)

    def finish(self) -> Corpus:
        """The corpus of all documents, in the order of their texts in the archive."""
        with self._spool, Archive(self._spool, self._max_text_bytes) as archive:
            for text, annotations in archive.pairs((".txt", ".ann"), needed=self._labelled):
                self._document(text, annotations)
        if self._faults:
            count = len(self._faults)
            more = " or more" if count == MAX_FAULTS else ""
            places = "1 place" if count == 1 else f"{count} places"
            raise Invalid(
                f"The corpus cannot be read: {places}{more} at fault.", self._faults, code="invalid_corpus"
            )
        if not self._count:
            raise empty_corpus()
        return self._corpus()

    def _corpus(self) -> Corpus:
        column = Column("0", vocabulary_of(self._pool, 0), np.concatenate(self._ids))
        offsets = np.concatenate([np.zeros(1, np.int64), *self._ends])
        if not self._labelled:
            return Corpus((column,), None, offsets)
        found, ids = numbered(np.concatenate(self._labels))
        names = list(self._names)
        vocabulary = Vocabulary.from_strings([names[code] for code in found.tolist()])
        return Corpus((column,), Column("label", vocabulary, ids), offsets)

    def _document(self, text_member: Member, annotation_member: Member | None) -> None:
        try:
            text = text_member.text()
            said = annotation_member.text() if annotation_member else ""
        except FaultyMember as error:
            self._fault(error.fault)
            return
        tokens = tokens_of(text, self._tokens)
        spans: list[tuple[int, int, str]] = []
        if annotation_member is not None and self._labelled:
            found = self._annotations(annotation_member.name, said, text)
            spans = self._spans(annotation_member.name, found, tokens)
        if not self._faults:
            self._keep(text, tokens, spans)

    def _keep(self, text: str, tokens: TextTokens, spans: Iterable[tuple[int, int, str]]) -> None:
        encoded = np.frombuffer(text.encode(), np.uint8)
        places = _byte_places(text)
        self._pool, ids = intern(self._pool, encoded, places[tokens.starts], places[tokens.stops], 1)
        self._ids.append(ids)
        self._ends.append(tokens.ends + self._count)
        self._count += ids.size
        labels = np.zeros(ids.size, np.int32)
        for first, last, kind in spans:
            labels[first] = self._names.setdefault(f"B-{kind}", len(self._names))
            if last > first + 1:
                labels[first + 1 : last] = self._names.setdefault(f"I-{kind}", len(self._names))
        self._labels.append(labels)

    def _annotations(self, name: str, said: str, text: str) -> list[_Annotation]:
        """The text-bound annotations of one .ann file, in order of their places."""
        found = []
        for number, ended in enumerate(said.split("\n"), start=1):
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
        found.sort(key=_PLACE)
        return found

    def _annotation(self, line: str, number: int, text: str) -> _Annotation | None:
        match = _ENTITY.fullmatch(line)
        if match is None:
            raise ValueError("not an annotation such as T1, tab, Type 0 5, tab, text")
        name, kind, first, last, more, said = match.groups()
        if self._types and kind not in self._types:
            return None
        start, stop = int(first), int(last)
        # Nearly all are of one part that the text says too. Lengths first, here and below: a slice for each of many
        # lines that lie would take the square of the time.
        if more or stop - start != len(said) or not said or text[start:stop] != said:
            start, stop = self._part(name, f"{first} {last}{more}", said, text)
        return _Annotation(start, stop, kind, name, number)

    def _part(self, name: str, places: str, said: str, text: str) -> tuple[int, int]:
        """Where an annotation of any parts starts and stops; raises ValueError if that is not what it says."""
        parts = [tuple(map(int, part.split(" "))) for part in places.split(";")]
        for start, stop in parts:
            if not start < stop <= len(text):
                raise ValueError(f"{name}: {start} {stop} is no part of a text of {len(text)} characters")
        if any(after[0] < before[1] for before, after in pairwise(parts)):
            raise ValueError(f"{name}: its parts are not in order")
        length = sum(stop - start for start, stop in parts) + len(parts) - 1
        if (
            length != len(said)
            or " ".join(text[start:stop] for start, stop in parts).replace("\n", " ") != said
        ):
            raise ValueError(f"{name}: the text at {places} is not what the annotation says it is")
        if len(parts) > 1 and not self._resolve:
            raise ValueError(
                f"{name}: discontinuous; conflicts=resolve takes it from its first to its last character"
            )
        return parts[0][0], parts[-1][1]

    def _spans(
        self, name: str, found: Sequence[_Annotation], tokens: TextTokens
    ) -> list[tuple[int, int, str]]:
        """(first token, token after the last, type) of each annotation that stands, in order."""
        spans: list[tuple[int, int, _Annotation]] = []
        for each, first, last, reason in self._aligned(found, tokens):
            if reason:
                self._fault(Fault(f"{name}: {each.name}: {reason}", line=each.line))
                continue
            if spans and first < spans[-1][1]:
                before = spans[-1]
                if not self._resolve:
                    overlap = f"{each.name}: overlaps {before[2].name}; conflicts=resolve keeps the longer"
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
        """(annotation, its first token, the one after its last, why it cannot stand or nothing) of all at once."""
        starts, stops = np.array([each[:2] for each in found], np.int64).reshape(-1, 2).T
        first = np.searchsorted(tokens.stops, starts, "right")
        last = np.searchsorted(tokens.starts, stops, "left")
        reasons = np.where(first < last, _STANDS, _NO_TOKEN)
        some = np.flatnonzero(first < last)
        a, b = first[some], last[some]
        if not self._resolve:
            cut = (tokens.starts[a] < starts[some]) | (tokens.stops[b - 1] > stops[some])
            reasons[some[cut]] = _CUT
        reasons[some[b > tokens.ends[np.searchsorted(tokens.ends, a, "right")]]] = _BEYOND
        said = [_REASONS[reason] for reason in reasons.tolist()]
        return zip(found, first.tolist(), last.tolist(), said, strict=True)

    def _fault(self, fault: Fault) -> None:
        self._faults.append(fault)
        if len(self._faults) >= MAX_FAULTS:
            raise Invalid(
                f"The corpus cannot be read: {MAX_FAULTS} places or more at fault.",
                self._faults,
                code="invalid_corpus",
            )


def _byte_places(text: str) -> Places:
    """(characters + 1,): where each character begins in UTF-8."""
    points = points_of(text)
    places = np.zeros(points.size + 1, np.int64)
    np.cumsum(1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000), out=places[1:])
    return places
