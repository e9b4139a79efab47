"""Coding tokens with a model's vocabularies: base columns by look-up, derived and matched ones from base columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary, pack
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.columns.matched.base import MatchedColumn
from tagsmith.core.features.columns.matched.training import train_columns
from tagsmith.core.features.columns.tokens import TokenTable
from tagsmith.core.features.lexicon.lexicon import NO_LEXICONS, Lexicons
from tagsmith.core.features.resolved import Derivation, Features
from tagsmith.core.features.templates.template import WAPITI_REACH, wapiti_boundary

Codes = NDArray[np.int32]  # (columns, tokens)


@dataclass(frozen=True, eq=False)
class DerivedColumn:
    """A derived column of a model."""

    name: str
    spec: Derivation
    vocabulary: Vocabulary
    of_base: NDArray[np.int32]  # (base entries,) the value of each entry of the base column, or UNKNOWN

    def ids_of(self, strings: Sequence[str]) -> NDArray[np.int32]:
        """The ids of the derived values of `strings`, which need not be in the base vocabulary."""
        values = self.spec.values(strings)
        ids = np.full(len(values), UNKNOWN, np.int32)
        present = [i for i, value in enumerate(values) if value is not None]
        if present:
            ids[present] = self.vocabulary.lookup(*pack([values[i] or "" for i in present]))
        return ids

    def mark_first(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        """Write `true` at the first token of each sentence if the column is of kind `first`."""
        if self.spec.marks_first:
            ids[offsets[:-1][np.diff(offsets) > 0]] = self.vocabulary.id_of("true")


@dataclass(frozen=True, eq=False)
class Coder:
    """The columns of a model: those of the corpus, then derived, then matched ones."""

    base: tuple[Vocabulary, ...]
    derived: tuple[DerivedColumn, ...]
    matched: tuple[MatchedColumn, ...] = ()

    @staticmethod
    def trained(
        features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS
    ) -> tuple["Coder", Codes]:
        """Make the columns that the features use from a training corpus, and code the corpus."""
        base = tuple(column.vocabulary for column in corpus.columns[: features.columns])
        strings = {spec.of: base[spec.of].strings() for _, spec in features.derived}
        derived = tuple(_derived(name, spec, strings[spec.of]) for name, spec in features.derived)
        found = train_columns(features.matched, corpus, lexicons)
        coder = Coder(base, derived, found.columns)
        return coder, coder._coded(coder.tokens_of(corpus), found.codes)

    @staticmethod
    def of(features: Features, corpus: Corpus, lexicons: Lexicons = NO_LEXICONS) -> "Coder":
        """The coder of a training corpus."""
        return Coder.trained(features, corpus, lexicons)[0]

    @property
    def computed(self) -> tuple[DerivedColumn | MatchedColumn, ...]:
        """The derived and matched columns."""
        return (*self.derived, *self.matched)

    @property
    def vocabularies(self) -> tuple[Vocabulary, ...]:
        return (*self.base, *(column.vocabulary for column in self.computed))

    def tokens_of(self, corpus: Corpus) -> TokenTable:
        """Code the base columns of a corpus."""
        if len(corpus.columns) < len(self.base):
            raise Invalid(
                f"The corpus has {len(corpus.columns)} attribute columns. The features need {len(self.base)}.",
                code="missing_column",
            )
        return TokenTable.of_corpus(corpus, self.base)

    def tokens_of_strings(self, columns: Sequence[Sequence[str]], offsets: NDArray[np.int64]) -> TokenTable:
        """Look up columns of strings. The codes are written where `code` returns them, so nothing is copied."""
        return TokenTable.of_strings(columns, offsets, self.base, len(self.derived) + len(self.matched))

    def code(self, tokens: TokenTable) -> Codes:
        """Code every token. Each distinct string is processed once."""
        matched = [column.codes(tokens.columns[column.spec.of]) for column in self.matched]
        return self._coded(tokens, matched)

    def code_corpus(self, corpus: Corpus) -> Codes:
        """Code every token of a corpus."""
        return self.code(self.tokens_of(corpus))

    def _coded(self, tokens: TokenTable, matched: Sequence[NDArray[np.int32]]) -> Codes:
        codes = tokens.codes
        if codes is None:
            codes = np.empty(
                (len(self.base) + len(self.derived) + len(self.matched), tokens.tokens), np.int32
            )
            for i, column in enumerate(tokens.columns):
                codes[i] = column.codes
        for i, derived in enumerate(self.derived, start=len(self.base)):
            codes[i] = tokens.columns[derived.spec.of].mapped(derived.of_base, derived.ids_of)
            derived.mark_first(codes[i], tokens.offsets)
        if matched:
            codes[len(self.base) + len(self.derived) :] = matched
        coded = codes.view()
        coded.flags.writeable = False
        return coded


def _derived(name: str, spec: Derivation, strings: list[str]) -> DerivedColumn:
    values = spec.values(strings)
    numbers: dict[str, int] = {}
    for value in [*values, *_extra_values(spec)]:
        if value is not None:
            numbers.setdefault(value, len(numbers))
    ids = np.fromiter(
        (UNKNOWN if value is None else numbers[value] for value in values), np.int32, len(values)
    )
    return DerivedColumn(name, spec, Vocabulary.from_strings(list(numbers)), readonly(ids, np.int32))


def _extra_values(spec: Derivation) -> Sequence[str | None]:
    """Values of a derived column that are not derived from a value of the corpus."""
    if spec.marks_first:
        return ["true"]
    if not spec.outside:
        return []
    return spec.values([wapiti_boundary(row) for row in range(-WAPITI_REACH, WAPITI_REACH + 1) if row])
