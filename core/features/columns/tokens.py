"""A text in the ids of a model's vocabularies: the common form of corpora and of the sentences of a request.

Training, evaluation and serving start from this form and use the same functions. So a value has the same code in
serving as in training.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.corpus.bag import Cells, joined
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.codes import UNKNOWN


class Missing(NamedTuple):
    """The strings of a column that are not in the model's vocabulary."""

    at: Places  # the tokens with such a string
    numbers: Places  # (tokens in `at`,) the index of each token's string in `strings`
    strings: Sequence[str]  # without repetitions


class TokenColumn:
    """One column of a text: for each token an entry of the model's vocabulary, or UNKNOWN.

    Missing strings are collected on first use, because most columns do not need them.
    """

    __slots__ = ("_find_missing", "_missing", "codes", "offsets")

    def __init__(
        self, codes: Ids, offsets: Places, find_missing: Callable[[], Missing | None] = lambda: None
    ) -> None:
        self.codes = codes  # (tokens,)
        self.offsets = offsets  # (sentences + 1,)
        self._find_missing: Callable[[], Missing | None] | None = find_missing
        self._missing: Missing | None = None

    @classmethod
    def of_corpus(cls, column: Column, offsets: Places, vocabulary: Vocabulary) -> "TokenColumn":
        """Code a column of a corpus, with one look-up per distinct string."""
        other = column.vocabulary
        if other is vocabulary:
            return cls(column.ids, offsets)
        entries = vocabulary.lookup(other.text, other.offsets[:-1], other.offsets[1:])

        def find_missing() -> Missing | None:
            lacking = np.flatnonzero(entries == UNKNOWN)
            number = np.full(len(entries), -1, np.int64)
            number[lacking] = np.arange(len(lacking))
            numbers = number[column.ids]
            at = np.flatnonzero(numbers >= 0)
            return Missing(at, numbers[at], [other[entry] for entry in lacking.tolist()])

        return cls(entries[column.ids], offsets, find_missing)

    @classmethod
    def of_strings(
        cls, strings: Sequence[str], offsets: Places, vocabulary: Vocabulary, codes: Ids
    ) -> "TokenColumn":
        """Look up one string per token and write the entries to `codes`."""
        vocabulary.lookup_strings(strings, codes)

        def find_missing() -> Missing | None:
            at = np.flatnonzero(codes == UNKNOWN)
            if not at.size:
                return None
            numbers: dict[str, int] = {}
            found = [numbers.setdefault(strings[token], len(numbers)) for token in at.tolist()]
            return Missing(at, np.array(found, np.int64), list(numbers))

        return cls(codes, offsets, find_missing)

    @property
    def missing(self) -> Missing | None:
        """The strings that are not in the vocabulary; None if all are."""
        if self._find_missing is not None:
            self._missing, self._find_missing = self._find_missing(), None
        return self._missing

    def identities(self) -> Ids:
        """One number per token, equal for equal strings: the code, or -2 and below for missing strings."""
        missing = self.missing
        if missing is None:
            return self.codes
        identities = self.codes.copy()
        identities[missing.at] = -2 - missing.numbers
        return identities

    def mapped(self, of_entries: Ids, of_strings: Callable[[Sequence[str]], Ids]) -> Ids:
        """Map each token to `of_entries[entry]`, or to what `of_strings` computes for a missing string."""
        missing = self.missing
        if missing is None:
            return of_entries[self.codes]
        # UNKNOWN is -1 and reads the last entry here; the next line overwrites it.
        out = of_entries[self.codes] if len(of_entries) else np.empty(len(self.codes), np.int32)
        out[missing.at] = of_strings(missing.strings)[missing.numbers]
        return out

    def cells(self, of_entries: Cells, of_strings: Callable[[Sequence[str]], Cells]) -> Cells:
        """Map each token to the cells of its entry, or to those that `of_strings` computes for a missing string."""
        missing = self.missing
        if missing is None:
            return of_entries.of_tokens(self.codes.astype(np.int64))
        known = np.ones(len(self.codes), np.bool_)
        known[missing.at] = False
        # Join only the entries of this text with the new cells, because a vocabulary can have millions of entries.
        seen = of_entries.of_tokens(self.codes[known].astype(np.int64))
        place = np.empty(len(self.codes), np.int64)
        place[known] = np.arange(seen.tokens)
        place[missing.at] = seen.tokens + missing.numbers
        return joined([seen, of_strings(missing.strings)]).of_tokens(place)


class TokenTable(NamedTuple):
    """A text as a model reads it: its columns, and the attribute bags of its tokens if it has any."""

    columns: tuple[TokenColumn, ...]
    offsets: Places
    #: Returns the entries of each token in a vocabulary of attribute names. None: the text has no bags.
    bag: Callable[[Vocabulary], Cells] | None = None
    #: (columns, tokens) A matrix whose first rows are the codes of `columns`, with room for columns computed from them.
    codes: NDArray[np.int32] | None = None

    @staticmethod
    def of_corpus(corpus: Corpus, vocabularies: Sequence[Vocabulary]) -> "TokenTable":
        """Code the first columns of a corpus with these vocabularies."""
        columns = tuple(
            TokenColumn.of_corpus(column, corpus.offsets, vocabulary)
            for column, vocabulary in zip(corpus.columns, vocabularies, strict=False)
        )
        return TokenTable(columns, corpus.offsets, None if corpus.bag is None else corpus.bag.cells_in)

    @staticmethod
    def of_strings(
        strings: Sequence[Sequence[str]], offsets: Places, vocabularies: Sequence[Vocabulary], computed: int
    ) -> "TokenTable":
        """Look up columns of strings, with room for the codes of `computed` further columns."""
        codes = np.empty((len(vocabularies) + computed, len(strings[0])), np.int32)
        columns = tuple(map(TokenColumn.of_strings, strings, repeat(offsets), vocabularies, codes))
        return TokenTable(columns, offsets, None, codes)

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])
