"""Names of the arrays a corpus is made of, and what is done with them everywhere."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ids = NDArray[np.int32]
Places = NDArray[np.int64]

#: Codes are numbered so many at a time: what is needed on the way is a few times the size of a slice, not of all.
_SLICE = 1 << 16


def ranges(begins: Places, ends: Places) -> Places:
    """Concatenate the integer ranges begins[i]:ends[i]."""
    lengths = ends - begins
    where = np.repeat(begins - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return where + np.arange(lengths.sum())


def numbered(codes: NDArray[np.integer]) -> tuple[NDArray[np.integer], Ids]:
    """(the distinct codes in order of first sight, the place of each code in these); codes are small, from 0."""
    place = np.full(int(codes.max(initial=-1)) + 1, -1, np.int32)
    ids = np.empty(codes.size, np.int32)
    found = 0
    for begin in range(0, codes.size, _SLICE):
        piece = codes[begin : begin + _SLICE]
        new, first = np.unique(piece[place[piece] < 0], return_index=True)
        place[new[np.argsort(first)]] = np.arange(found, found + new.size)
        found += new.size
        ids[begin : begin + _SLICE] = place[piece]
    seen = np.flatnonzero(place >= 0)
    return seen[np.argsort(place[seen])], ids
