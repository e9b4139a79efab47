"""Inverted index from attributes to tokens."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import offsets_of
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.learn.problem.problem import Problem


class Occurrences(NamedTuple):
    """The tokens of each attribute: `starts[a]:starts[a+1]`, in text order."""

    starts: NDArray[np.int64]  # (attributes + 1,)
    tokens: NDArray[np.int32]
    values: NDArray[np.float32]  # empty unless `valued`; empty means all are 1
    valued: bool


@kernel
def _invert(
    starts: NDArray[np.int64], rows: NDArray[np.int32], given: NDArray[np.float32], places: NDArray[np.int64],
    tokens: NDArray[np.int32], values: NDArray[np.float32],
) -> None:  # fmt: skip
    """Counting sort of the cells by attribute. `places` holds the start of each attribute and advances to its end."""
    for token in range(starts.shape[0] - 1):
        for k in range(starts[token], starts[token + 1]):
            place = places[rows[k]]
            tokens[place] = token
            if values.shape[0] > 0:
                values[place] = given[k]
            places[rows[k]] = place + 1


def occurrences_of(problem: Problem) -> Occurrences:
    """Invert the attributes of tokens into the tokens of attributes."""
    data = problem.data
    return _inverted(data.starts, data.rows, data.values, problem.attributes)


def edge_occurrences_of(problem: Problem) -> Occurrences:
    """Invert the edge attributes in the same way."""
    data = problem.data
    return _inverted(data.edge_starts, data.edge_rows, data.values[:0], problem.edge_attributes)


def _inverted(
    starts: NDArray[np.int64], rows: NDArray[np.int32], values: NDArray[np.float32], attributes: int
) -> Occurrences:
    places = offsets_of(np.bincount(rows, minlength=attributes))
    tokens, sorted_values = np.empty(len(rows), np.int32), np.empty(len(values), np.float32)
    _invert(starts, rows, values, places[:-1].copy(), tokens, sorted_values)
    return Occurrences(
        places, readonly(tokens, np.int32), readonly(sorted_values, np.float32), len(values) > 0
    )
