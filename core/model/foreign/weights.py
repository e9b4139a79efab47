"""Weights of other programs, which come one by one, as the rows that a model has."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.model.file import CorruptModel
from core.model.untrusted import MAX_WEIGHT


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Weights as CSR: row i has `places[starts[i]:starts[i + 1]]`, in rising order."""

    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    weights: NDArray[np.float32]


def rows_of(
    rows: NDArray[np.int64], places: NDArray[np.int64], weights: NDArray[np.float64], count: int, width: int
) -> Rows:
    """The weights of `count` rows of `width` places. Those of the same place are one, and zeros are left out."""
    _check(weights)
    keys, where = np.unique(rows * width + places, return_inverse=True)
    sums = np.bincount(where, weights=weights, minlength=len(keys)).astype(np.float32)
    keys, sums = keys[sums != 0], sums[sums != 0]
    starts = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * width)
    return Rows(starts.astype(np.int64), keys % width, sums)


def transitions_of(
    before: NDArray[np.int64], after: NDArray[np.int64], weights: NDArray[np.float64], labels: int
) -> NDArray[np.float32]:
    """The weights of pairs of labels as a matrix."""
    _check(weights)
    made = np.zeros((labels, labels))
    np.add.at(made, (before, after), weights)
    return made.astype(np.float32)


def _check(weights: NDArray[np.float64]) -> None:
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise CorruptModel(f"A weight of the file is not a number, or larger than {MAX_WEIGHT:g}")
