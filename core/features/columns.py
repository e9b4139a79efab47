"""Coding a corpus in a model's vocabularies: base columns by look-up, derived ones by way of the base entry."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus.corpus import Corpus
from core.corpus.vocabulary import Vocabulary, pack
from core.errors import Invalid
from core.features.index import UNKNOWN
from core.features.matching import NO_LEXICONS, Lexicons, MatchedColumn, Text, trained
from core.features.settled import Chain, Features
from core.features.template import WAPITI_REACH, wapiti_boundary
from core.jit import readonly

Codes = NDArray[np.int32]  # (columns, tokens)


@dataclass(frozen=True, eq=False)
class DerivedColumn:
    """A derived column: its values, and the value of each entry of the column it comes from."""

    name: str
    spec: Chain
    vocabulary: Vocabulary
    of_base: NDArray[np.int32]  # (base entries,) id here, or UNKNOWN where the entry has no such value

    def ids_of(self, strings: Sequence[str]) -> NDArray[np.int32]:
        """The ids of the derived values of `strings`, whether or not the base column knows them."""
        function = self.spec.function()
        values = [function(text) for text in strings]
        ids = np.full(len(values), UNKNOWN, np.int32)
        present = [i for i, value in enumerate(values) if value is not None]
        if present:
            ids[present] = self.vocabulary.lookup(*pack([values[i] or "" for i in present]))
        return ids

    def mark_first(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        """Put what no value tells into the ids of a text: where its sentences begin."""
        if self.spec.marks_first:
            ids[offsets[:-1][np.diff(offsets) > 0]] = self.vocabulary.id_of("true")


@dataclass(frozen=True, eq=False)
class Coder:
    """The vocabularies of a model, base columns first."""

    base: tuple[Vocabulary, ...]
    derived: tuple[DerivedColumn, ...]
    matched: tuple[MatchedColumn, ...] = ()

    @staticmethod
    def trained(
        features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS
    ) -> tuple["Coder", Codes]:
        """Take the vocabularies of a training corpus, make the columns that the features use, and code the corpus."""
        base = tuple(column.vocabulary for column in corpus.columns[: features.columns])
        strings = {spec.of: base[spec.of].strings() for _, spec in features.derived}
        derived = tuple(_derived(name, spec, strings[spec.of]) for name, spec in features.derived)
        found = trained(features.matched, corpus, lexicons)
        coder = Coder(base, derived, found.columns)
        return coder, coder._coded(corpus, found.codes)

    @staticmethod
    def of(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> "Coder":
        """The coder of a training corpus."""
        return Coder.trained(features, corpus, lexicons)[0]

    @property
    def made(self) -> tuple[DerivedColumn | MatchedColumn, ...]:
        """The columns behind those of the corpus."""
        return (*self.derived, *self.matched)

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...]:
        return (*self.base, *(column.vocabulary for column in self.made))

    def code(self, corpus: Corpus) -> Codes:
        """Code every token of a corpus; the work per string is once a distinct value."""
        self._check(corpus)
        texts = {column.spec.of: self._text(corpus, column.spec.of) for column in self.matched}
        return self._coded(corpus, [column.codes(texts[column.spec.of]) for column in self.matched])

    def _check(self, corpus: Corpus) -> None:
        if len(corpus.columns) < len(self.base):
            raise Invalid(
                f"The corpus has {len(corpus.columns)} attribute columns; the features need {len(self.base)}",
                code="missing_column",
            )

    def _text(self, corpus: Corpus, number: int) -> Text:
        """A column of another corpus, as the columns that look at sentences take it."""
        column, own = corpus.columns[number], self.base[number]
        if column.vocabulary is own:
            return Text(column.ids, (), corpus.offsets)
        other = column.vocabulary
        ids = own.lookup(other.text, other.offsets[:-1], other.offsets[1:])
        lacking = np.flatnonzero(ids == UNKNOWN)
        ids[lacking] = len(own) + np.arange(len(lacking), dtype=np.int32)
        return Text(ids[column.ids], [other[i] for i in lacking.tolist()], corpus.offsets)

    def _coded(self, corpus: Corpus, matched: Sequence[NDArray[np.int32]]) -> Codes:
        codes = np.empty((len(self.vocabularies), corpus.tokens), np.int32)
        for i, vocabulary in enumerate(self.base):
            column = corpus.columns[i]
            if column.vocabulary is vocabulary:
                codes[i] = column.ids
            else:
                other = column.vocabulary
                codes[i] = vocabulary.lookup(other.text, other.offsets[:-1], other.offsets[1:])[column.ids]
        for i, derived in enumerate(self.derived, start=len(self.base)):
            column = corpus.columns[derived.spec.of]
            own = column.vocabulary is self.base[derived.spec.of]
            ids = derived.of_base if own else derived.ids_of(column.vocabulary.strings())
            codes[i] = ids[column.ids]
            derived.mark_first(codes[i], corpus.offsets)
        if matched:
            codes[len(self.base) + len(self.derived) :] = matched
        return readonly(codes, np.int32)


def _derived(name: str, spec: Chain, strings: list[str]) -> DerivedColumn:
    function = spec.function()
    values = [function(text) for text in strings]
    numbers: dict[str, int] = {}
    for value in [*values, *_beside(spec)]:
        if value is not None:
            numbers.setdefault(value, len(numbers))
    ids = np.fromiter(
        (UNKNOWN if value is None else numbers[value] for value in values), np.int32, len(values)
    )
    return DerivedColumn(name, spec, Vocabulary.from_strings(list(numbers)), readonly(ids, np.int32))


def _beside(spec: Chain) -> list[str | None]:
    """Values of a derived column that come from no value of the corpus."""
    if spec.marks_first:
        return ["true"]
    if not spec.outside:
        return []
    function = spec.function()
    return [function(wapiti_boundary(row)) for row in range(-WAPITI_REACH, WAPITI_REACH + 1) if row]
