"""Bags: columns with any number of values per token, such as named attributes or all substrings of a word.

A template over a bag reads nothing else, so each feature is one entry of the bag's vocabulary. The index is therefore a
plain array from entries to attributes, without hashing. Outside a sentence a bag has no values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.bag import Cells, merged
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.vocabulary import Vocabulary, pack
from tagsmith.core.features.columns.tokens import TokenTable
from tagsmith.core.features.resolved import BagTemplate

NO_CELLS = Cells(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))

#: The group name of a corpus's bag attributes, which have no template.
BAG_NAME = "attributes"


@dataclass(frozen=True, eq=False, slots=True)
class BagIndex:
    """The attributes of one bag template."""

    spec: BagTemplate
    vocabulary: Vocabulary
    attributes: NDArray[np.int32]  # (entries,) the attribute of each entry, or -1
    of_base: Cells  # the entries of each value of the source column; empty for attribute bags

    def cells(self, tokens: TokenTable) -> Cells:
        """The entries of each token."""
        if self.spec.derivation is not None:
            return tokens.columns[self.spec.derivation.of].cells(self.of_base, self.cells_of)
        if tokens.bag is None:
            raise without_bags()
        return tokens.bag(self.vocabulary)

    def cells_of(self, strings: Sequence[str]) -> Cells:
        """The known entries of values of the source column."""
        assert self.spec.derivation is not None
        parts = self.spec.derivation.parts(strings)
        starts = np.cumsum([0, *map(len, parts)])
        ids = self.vocabulary.lookup(*pack(list(chain.from_iterable(parts))))
        return Cells(starts, ids, NO_CELLS.values).only(ids >= 0)

    def of_tokens(self, cells: Cells, offsets: NDArray[np.int64]) -> list[Cells]:
        """The attributes of tokens with these entries: one item per offset of the template."""
        attributes = cells.mapped(self.attributes)
        return [_shifted(attributes, row, offsets) for row in self.spec.rows]

    def restricted(self, live: NDArray[np.int64]) -> "BagIndex":
        """The bag with only the attributes in `live`, which is sorted, each renumbered by its index in `live`."""
        place = np.searchsorted(live, self.attributes)
        place[place == len(live)] = 0
        alive = np.zeros(len(self.attributes), np.bool_) if not len(live) else live[place] == self.attributes
        kept = np.flatnonzero(alive)
        numbers = np.full(len(self.attributes), -1, np.int32)
        numbers[kept] = np.arange(len(kept), dtype=np.int32)
        text, offsets = self.vocabulary.text, self.vocabulary.offsets
        return BagIndex(
            self.spec,
            Vocabulary.from_spans(text, offsets[kept], offsets[kept + 1]),
            readonly(place[kept], np.int32),
            self.of_base.mapped(numbers),
        )


def without_bags() -> Invalid:
    """The error for tokens with columns where the features are named attributes."""
    return Invalid(
        "The features are named attributes, but the tokens have columns. Use a corpus with named attributes.",
        code="missing_column",
    )


def learn_bags(
    specs: Sequence[BagTemplate], corpus: Corpus, cutoff: int, first: int
) -> tuple[tuple[BagIndex, ...], int]:
    """Number the features that occur at least `cutoff` times, from `first` on, most frequent first.

    Returns the bags, and the number after the last one used.
    """
    tokens = TokenTable.of_corpus(corpus, [column.vocabulary for column in corpus.columns])
    bags = [_unnumbered(spec, corpus) for spec in specs]
    counts = [
        sum(
            np.bincount(part.ids, minlength=len(bag.vocabulary))
            for part in bag.of_tokens(bag.cells(tokens), corpus.offsets)
        )
        for bag in bags
    ]
    every = np.concatenate([np.zeros(0, np.int64), *counts])
    order = np.argsort(-every, kind="stable")
    order = order[: int(np.searchsorted(-every[order], -cutoff, side="right"))]
    numbers = np.full(len(every), -1, np.int32)
    numbers[order] = first + np.arange(len(order), dtype=np.int32)
    numbered, at = [], 0
    for bag in bags:
        size = len(bag.vocabulary)
        numbered.append(replace(bag, attributes=readonly(numbers[at : at + size], np.int32)))
        at += size
    return tuple(numbered), first + len(order)


def attributes_of(bags: Sequence[BagIndex], tokens: TokenTable, singles: Cells | None = None) -> Cells:
    """All attributes of tokens. `singles`, those of templates over columns with one value per token, come first."""
    if not bags:
        return NO_CELLS if singles is None else singles
    parts = [] if singles is None else [singles]
    for bag in bags:
        parts += bag.of_tokens(bag.cells(tokens), tokens.offsets)
    return merged(parts)


def _unnumbered(spec: BagTemplate, corpus: Corpus) -> BagIndex:
    """Make a bag in which every entry is its own attribute."""
    if spec.derivation is None:
        if corpus.bag is None:
            raise without_bags()
        return _identity(BagIndex(spec, corpus.bag.vocabulary, NO_CELLS.ids, NO_CELLS))
    strings = corpus.columns[spec.derivation.of].vocabulary.strings()
    numbers: dict[str, int] = {}
    ids: list[int] = []
    starts = [0]
    for parts in spec.derivation.parts(strings):
        ids += [numbers.setdefault(part, len(numbers)) for part in parts]
        starts.append(len(ids))
    cells = Cells(np.array(starts), np.array(ids, np.int32), NO_CELLS.values)
    return _identity(BagIndex(spec, Vocabulary.from_strings(list(numbers)), NO_CELLS.ids, cells))


def _identity(bag: BagIndex) -> BagIndex:
    return replace(bag, attributes=readonly(np.arange(len(bag.vocabulary)), np.int32))


def _shifted(cells: Cells, row: int, offsets: NDArray[np.int64]) -> Cells:
    """The cells `row` tokens away from each token; none outside its sentence."""
    if row == 0:
        return cells
    lengths = np.diff(offsets)
    there = np.arange(cells.tokens) + row
    inside = (there >= np.repeat(offsets[:-1], lengths)) & (there < np.repeat(offsets[1:], lengths))
    # Tokens that read outside the sentence read an empty cell after the last one.
    starts = np.append(cells.starts, cells.starts[-1])
    return Cells(starts, cells.ids, cells.values).of_tokens(np.where(inside, there, cells.tokens))
