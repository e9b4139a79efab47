"""Bags of attributes: any number of named attributes per token, each with a value."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places, ranges
from tagsmith.core.base.jit import readonly
from tagsmith.core.corpus.vocabulary import Vocabulary

#: Largest absolute value. Products with weights, their sums and squares stay far within float32.
MAX_VALUE = 1e12

Values = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """Ids with values, per token: token t has `ids[starts[t]:starts[t + 1]]`."""

    starts: Places  # (tokens + 1,)
    ids: Ids
    values: Values  # one per id; empty means that all are 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", readonly(self.starts, np.int64))
        object.__setattr__(self, "ids", readonly(self.ids, np.int32))
        object.__setattr__(self, "values", readonly(self.values, np.float32))

    @staticmethod
    def of(starts: Places, ids: Ids, values: Values) -> "Cells":
        """Return cells without zero values, and with empty `values` if all values are 1."""
        if (values == 1).all():
            return Cells(starts, ids, values[:0])
        cells, present = Cells(starts, ids, values), values != 0
        return cells if present.all() else cells.only(present)

    @property
    def tokens(self) -> int:
        return self.starts.size - 1

    def only(self, kept: NDArray[np.bool_]) -> "Cells":
        """Return the cells where `kept` is true."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return Cells(
            before[self.starts], self.ids[kept], self.values[kept] if self.values.size else self.values
        )

    def mapped(self, numbers: NDArray[np.int32]) -> "Cells":
        """Return the cells with ids replaced by `numbers[id]`; cells where that is -1 are removed."""
        found = Cells(self.starts, numbers[self.ids], self.values)
        present = found.ids >= 0
        return found if present.all() else found.only(present)

    def part(self, first: int, last: int) -> "Cells":
        """Return the cells of tokens `first:last`."""
        begin, end = self.starts[first], self.starts[last]
        return Cells(self.starts[first : last + 1] - begin, self.ids[begin:end], self.values[begin:end])

    def of_tokens(self, tokens: NDArray[np.int64]) -> "Cells":
        """Return the cells of the given tokens, in the given order."""
        begins, ends = self.starts[tokens], self.starts[tokens + 1]
        places = ranges(begins, ends)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)])
        return Cells(starts, self.ids[places], self.values[places] if self.values.size else self.values)


def joined(blocks: Sequence[Cells]) -> Cells:
    """Concatenate the tokens of several blocks."""
    lengths = [np.diff(block.starts) for block in blocks]
    weighted = any(block.values.size for block in blocks)
    values = [b.values if b.values.size else np.ones(b.ids.size * weighted, np.float32) for b in blocks]
    return Cells(
        np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum(),
        np.concatenate([block.ids for block in blocks]),
        np.concatenate(values),
    )


def merged(parts: Sequence[Cells]) -> Cells:
    """Merge the cells that several parts have for the same tokens. Within a token the parts follow each other."""
    if len(parts) == 1:
        return parts[0]
    lengths = [np.diff(part.starts) for part in parts]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.sum(lengths, axis=0))])
    ids = np.empty(starts[-1], np.int32)
    weighted = any(part.values.size for part in parts)
    values = np.ones(ids.size * weighted, np.float32)
    begins = starts[:-1].copy()
    for part, length in zip(parts, lengths, strict=True):
        places = ranges(begins, begins + length)
        ids[places] = part.ids
        if part.values.size:
            values[places] = part.values
        begins += length
    return Cells(starts, ids, values)


@dataclass(frozen=True, eq=False, slots=True)
class Bag:
    """The attributes of a corpus: their names, and the cells of each token."""

    vocabulary: Vocabulary
    cells: Cells

    def cells_in(self, vocabulary: Vocabulary) -> Cells:
        """Return the cells with the ids of another vocabulary; attributes missing from it are removed."""
        if vocabulary is self.vocabulary:
            return self.cells
        own = self.vocabulary
        return self.cells.mapped(vocabulary.lookup(own.text, own.offsets[:-1], own.offsets[1:]))

    def __post_init__(self) -> None:
        """Check the arrays once: training kernels use them as indices without checks."""
        starts, ids, values = self.cells.starts, self.cells.ids, self.cells.values
        sound = (
            starts.ndim == 1
            and starts.size >= 1
            and starts[0] == 0
            and starts[-1] == ids.size
            and bool((starts[1:] >= starts[:-1]).all())
            and values.size in (0, ids.size)
            and (ids.size == 0 or 0 <= int(ids.min()) <= int(ids.max()) < len(self.vocabulary))
        )
        if not sound:
            raise ValueError("the arrays of the bags contradict each other")
        if not (np.abs(values) <= MAX_VALUE).all():
            raise ValueError("the value of an attribute is not within bounds")
