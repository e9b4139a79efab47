"""Columns of which a token has any number of values: bags of attributes, and all substrings of a word.

A template looks at one such column and nothing else, so a feature is an entry of the column: no key is mixed, and an
array from entries to attributes is all the index there is. Outside a sentence such a column has no values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from core.corpus.bag import Bag, Cells, merged
from core.corpus.corpus import Corpus
from core.corpus.vocabulary import Vocabulary, pack
from core.errors import Invalid
from core.features.settled import Several
from core.jit import readonly

NO_CELLS = Cells(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    """The attributes of one such template."""

    spec: Several
    vocabulary: Vocabulary
    attributes: NDArray[np.int32]  # (entries,) the attribute of each entry, or -1
    of_base: Cells  # the entries of each value of the column that is taken apart; nothing for bags

    def cells(self, corpus: Corpus, base: Sequence[Vocabulary]) -> Cells:
        """The entries that each token of a corpus has; `base` are the columns that `of_base` is about."""
        if self.spec.chain is None:
            bag = bag_of(corpus)
            if bag.vocabulary is self.vocabulary:
                return bag.cells
            other = bag.vocabulary
            ids = self.vocabulary.lookup(other.text, other.offsets[:-1], other.offsets[1:])
            return bag.cells.mapped(ids)
        column = corpus.columns[self.spec.chain.of]
        own = column.vocabulary is base[self.spec.chain.of]
        entries = self.of_base if own else self.cells_of(column.vocabulary.strings())
        return entries.of_tokens(column.ids.astype(np.int64))

    def cells_of(self, strings: Sequence[str]) -> Cells:
        """The entries of values of the column that is taken apart, known or not."""
        assert self.spec.chain is not None
        parts = list(map(self.spec.chain.parts(), strings))
        starts = np.cumsum([0, *map(len, parts)])
        ids = self.vocabulary.lookup(*pack(list(chain.from_iterable(parts))))
        return Cells(starts, ids, NO_CELLS.values).only(ids >= 0)

    def of_tokens(self, cells: Cells, offsets: NDArray[np.int64]) -> list[Cells]:
        """The attributes of tokens that have these entries, a part for each place that the template looks at."""
        attributes = cells.mapped(self.attributes)
        return [_shifted(attributes, row, offsets) for row in self.spec.rows]

    def restricted(self, live: NDArray[np.int64]) -> "Family":
        """The family with only the attributes `live` (in rising order), each numbered by its place there."""
        place = np.searchsorted(live, self.attributes)
        place[place == len(live)] = 0
        alive = np.zeros(len(self.attributes), np.bool_) if not len(live) else live[place] == self.attributes
        kept = np.flatnonzero(alive)
        numbers = np.full(len(self.attributes), -1, np.int32)
        numbers[kept] = np.arange(len(kept), dtype=np.int32)
        text, offsets = self.vocabulary.text, self.vocabulary.offsets
        return Family(
            self.spec,
            Vocabulary.from_spans(text, offsets[kept], offsets[kept + 1]),
            readonly(place[kept], np.int32),
            self.of_base.mapped(numbers),
        )


def bag_of(corpus: Corpus) -> Bag:
    """The bags of a corpus, or Invalid when its tokens have columns instead."""
    if corpus.bag is None:
        raise Invalid(
            "The features are named attributes of tokens; the tokens of the corpus have columns",
            code="missing_column",
        )
    return corpus.bag


def learn_families(
    specs: Sequence[Several], corpus: Corpus, cutoff: int, first: int
) -> tuple[tuple[Family, ...], int]:
    """Number the features that occur at least `cutoff` times, from `first` on, the frequent ones before the rare.

    Returns the families, and the number behind the last.
    """
    base = [column.vocabulary for column in corpus.columns]
    families = [_unnumbered(spec, corpus) for spec in specs]
    counts = [
        sum(
            np.bincount(part.ids, minlength=len(family.vocabulary))
            for part in family.of_tokens(family.cells(corpus, base), corpus.offsets)
        )
        for family in families
    ]
    every = np.concatenate([np.zeros(0, np.int64), *counts])
    order = np.argsort(-every, kind="stable")
    order = order[: int(np.searchsorted(-every[order], -cutoff, side="right"))]
    numbers = np.full(len(every), -1, np.int32)
    numbers[order] = first + np.arange(len(order), dtype=np.int32)
    numbered, at = [], 0
    for family in families:
        size = len(family.vocabulary)
        numbered.append(replace(family, attributes=readonly(numbers[at : at + size], np.int32)))
        at += size
    return tuple(numbered), first + len(order)


def attributes_of(
    families: Sequence[Family], corpus: Corpus, base: Sequence[Vocabulary], singles: Cells
) -> Cells:
    """All attributes of the tokens of a corpus: `singles`, those of templates over one value a token, come first."""
    parts = [singles]
    for family in families:
        parts += family.of_tokens(family.cells(corpus, base), corpus.offsets)
    return merged(parts)


def _unnumbered(spec: Several, corpus: Corpus) -> Family:
    """A family whose attributes are its entries."""
    if spec.chain is None:
        bag = bag_of(corpus)
        return _identity(Family(spec, bag.vocabulary, NO_CELLS.ids, NO_CELLS))
    split = spec.chain.parts()
    numbers: dict[str, int] = {}
    ids: list[int] = []
    starts = [0]
    for text in corpus.columns[spec.chain.of].vocabulary.strings():
        ids += [numbers.setdefault(part, len(numbers)) for part in split(text)]
        starts.append(len(ids))
    cells = Cells(np.array(starts), np.array(ids, np.int32), NO_CELLS.values)
    return _identity(Family(spec, Vocabulary.from_strings(list(numbers)), NO_CELLS.ids, cells))


def _identity(family: Family) -> Family:
    return replace(family, attributes=readonly(np.arange(len(family.vocabulary)), np.int32))


def _shifted(cells: Cells, row: int, offsets: NDArray[np.int64]) -> Cells:
    """What each token sees `row` tokens away; nothing outside its sentence."""
    if row == 0:
        return cells
    lengths = np.diff(offsets)
    there = np.arange(cells.tokens) + row
    inside = (there >= np.repeat(offsets[:-1], lengths)) & (there < np.repeat(offsets[1:], lengths))
    # Tokens that look outside take from an empty place behind the last.
    starts = np.append(cells.starts, cells.starts[-1])
    return Cells(starts, cells.ids, cells.values).of_tokens(np.where(inside, there, cells.tokens))
