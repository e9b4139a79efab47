"""A corpus is integer columns: for each column a vocabulary and one id a token, and where sentences begin.

Instead of columns its tokens may have bags of named attributes with values (see `bag`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Ids, Places, ranges
from core.corpus.bag import Bag
from core.corpus.vocabulary import Vocabulary
from core.errors import Invalid
from core.jit import readonly


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """One column: what stands in it at each token."""

    name: str
    vocabulary: Vocabulary
    ids: Ids  # (tokens,), always read-only, so that kernels see one type

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", readonly(self.ids, np.int32))


@dataclass(frozen=True, eq=False, slots=True)
class Corpus:
    """Sentences of tokens with attribute columns or a bag of attributes and, when labelled, a label each."""

    columns: tuple[Column, ...]
    labels: Column | None
    offsets: Places  # (sentences + 1,): sentence i is tokens offsets[i]:offsets[i + 1]
    bag: Bag | None = None

    def __post_init__(self) -> None:
        """Training kernels index with these ids and offsets unchecked, so they are checked here, once."""
        object.__setattr__(self, "offsets", readonly(self.offsets, np.int64))
        offsets = self.offsets
        if offsets.ndim != 1 or offsets.size < 1 or offsets[0] != 0 or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("offsets must rise from 0")
        for column in self.every_column():
            ids = column.ids
            if ids.shape != (self.tokens,):
                raise ValueError(f"column {column.name} has {ids.size} ids for {self.tokens} tokens")
            if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < len(column.vocabulary):
                raise ValueError(f"column {column.name} has an id outside its vocabulary")
        if self.bag is not None and self.bag.cells.tokens != self.tokens:
            raise ValueError(f"{self.bag.cells.tokens} bags for {self.tokens} tokens")

    def every_column(self) -> tuple[Column, ...]:
        """The attribute columns, then the labels if there are any."""
        return self.columns if self.labels is None else (*self.columns, self.labels)

    @property
    def names(self) -> list[str]:
        """What the attribute columns are called."""
        return [column.name for column in self.columns]

    @property
    def sentences(self) -> int:
        return self.offsets.size - 1

    @property
    def tokens(self) -> int:
        return int(self.offsets[-1])

    def subset(self, indices: Sequence[int] | NDArray[np.int64]) -> "Corpus":
        """The sentences `indices`, in that order, over the same vocabularies."""
        chosen = np.asarray(indices, np.int64)
        if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < self.sentences:
            raise IndexError("no such sentence")
        starts = self.offsets[chosen]
        offsets = np.zeros(chosen.size + 1, np.int64)
        np.cumsum(self.offsets[chosen + 1] - starts, out=offsets[1:])
        tokens = ranges(starts, self.offsets[chosen + 1])
        return Corpus(
            tuple(Column(column.name, column.vocabulary, column.ids[tokens]) for column in self.columns),
            None
            if self.labels is None
            else Column(self.labels.name, self.labels.vocabulary, self.labels.ids[tokens]),
            offsets,
            None if self.bag is None else Bag(self.bag.vocabulary, self.bag.cells.of_tokens(tokens)),
        )

    def split(self, fraction: float, seed: int) -> tuple["Corpus", "Corpus"]:
        """(train, dev) with about `fraction` of the sentences in dev, each part in the order of the corpus.

        A sentence's part depends on the seed and its place only, through a fixed mixer: the same split in
        every release of every library.
        """
        if not 0.0 < fraction < 1.0:
            raise ValueError("fraction must lie between 0 and 1")
        if self.sentences < 2:
            raise Invalid("A corpus of one sentence cannot be split.", code="corpus_too_small")
        held_out = min(max(1, round(fraction * self.sentences)), self.sentences - 1)
        order = shuffled(self.sentences, seed)
        return self.subset(np.sort(order[held_out:])), self.subset(np.sort(order[:held_out]))


def shuffled(count: int, seed: int) -> NDArray[np.int64]:
    """The numbers below `count` in an order that the seed decides, the same in every release of every library."""
    return np.argsort(_mixed(count, seed), kind="stable")


def _mixed(count: int, seed: int) -> NDArray[np.uint64]:
    """The first `count` outputs of splitmix64 from `seed`."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(seed & 0xFFFFFFFFFFFFFFFF)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
