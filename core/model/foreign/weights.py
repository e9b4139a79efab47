"""Conversion of single weights of other programs to the rows of a model."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.model.file import CorruptModel
from tagsmith.core.model.untrusted import MAX_WEIGHT


@dataclass(frozen=True, eq=False, slots=True)
class SparseRows:
    """Weights as CSR. Row i has `places[starts[i]:starts[i + 1]]`, in rising order."""

    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    weights: NDArray[np.float32]


def rows_of(
    rows: NDArray[np.int64], places: NDArray[np.int64], weights: NDArray[np.float64], count: int, width: int
) -> SparseRows:
    """Build `count` rows of `width` places. Weights of the same place are added up, and zeros are dropped."""
    _check(weights)
    keys, where = np.unique(rows * width + places, return_inverse=True)
    sums = np.bincount(where, weights=weights, minlength=len(keys)).astype(np.float32)
    keys, sums = keys[sums != 0], sums[sums != 0]
    starts = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * width)
    return SparseRows(starts.astype(np.int64), keys % width, sums)


def transitions_of(
    before: NDArray[np.int64], after: NDArray[np.int64], weights: NDArray[np.float64], labels: int
) -> NDArray[np.float32]:
    """Return the weights of label pairs as a matrix."""
    _check(weights)
    made = np.zeros((labels, labels))
    np.add.at(made, (before, after), weights)
    return made.astype(np.float32)


def _check(weights: NDArray[np.float64]) -> None:
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise CorruptModel(f"A weight of the file is not a number, or exceeds {MAX_WEIGHT:g}.")
