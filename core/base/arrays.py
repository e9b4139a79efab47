"""Array types of corpora, and operations on them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import readonly

Bytes = NDArray[np.uint8]
Ids = NDArray[np.int32]
Places = NDArray[np.int64]

#: Codes are numbered in slices of this size, so that temporary arrays stay small.
_SLICE = 1 << 16


def ranges(begins: Places, ends: Places) -> Places:
    """Concatenate the integer ranges begins[i]:ends[i]."""
    lengths = ends - begins
    where = np.repeat(begins - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return where + np.arange(lengths.sum())


def offsets_of(lengths: NDArray[Any]) -> Places:
    """Return the start of each run of these lengths, and the end of the last one."""
    return readonly(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), np.int64)


def slices(offsets: Places, size: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of runs, each of up to `size` elements, or one longer run."""
    first = 0
    while first < offsets.size - 1:
        end = np.searchsorted(offsets, offsets[first] + size, side="right")
        last = max(first + 1, int(end) - 1)
        yield first, last
        first = last


def numbered(codes: NDArray[np.integer]) -> tuple[NDArray[np.integer], Ids]:
    """Number codes in order of first occurrence.

    Return the distinct codes in that order, and the number of each code. Codes must be small integers, 0 or more.
    """
    number_of = np.full(int(codes.max(initial=-1)) + 1, -1, np.int32)
    ids = np.empty(codes.size, np.int32)
    found = 0
    for begin in range(0, codes.size, _SLICE):
        piece = codes[begin : begin + _SLICE]
        new, first = np.unique(piece[number_of[piece] < 0], return_index=True)
        number_of[new[np.argsort(first)]] = np.arange(found, found + new.size)
        found += new.size
        ids[begin : begin + _SLICE] = number_of[piece]
    seen = np.flatnonzero(number_of >= 0)
    return seen[np.argsort(number_of[seen])], ids
