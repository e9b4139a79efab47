"""An open-addressing hash table from 64-bit keys to rows, for kernels. Key 0 marks an empty cell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import inlined, inner, kernel, readonly


@inlined
def find(keys: NDArray[np.uint64], rows: NDArray[np.int32], key: np.uint64) -> int:
    """Return the row of a key, or -1."""
    mask = np.uint64(keys.shape[0] - 1)
    cell = key & mask
    while keys[cell] != np.uint64(0):
        if keys[cell] == key:
            return int(rows[cell])
        cell = (cell + np.uint64(1)) & mask
    return -1


@inner
def insert(keys: NDArray[np.uint64], rows: NDArray[np.int32], key: np.uint64, row: int) -> None:
    """Insert a key that is not in the table."""
    mask = np.uint64(keys.shape[0] - 1)
    cell = key & mask
    while keys[cell] != np.uint64(0):
        cell = (cell + np.uint64(1)) & mask
    keys[cell] = key
    rows[cell] = row


@dataclass(frozen=True)
class Table:
    """An immutable table of (key, row) cells. Its capacity is a power of two; at most half of the cells are used."""

    keys: NDArray[np.uint64]
    rows: NDArray[np.int32]

    @staticmethod
    def of(keys: NDArray[np.uint64]) -> "Table":
        """Build a table of `keys`; the row of a key is its position."""
        cells, rows = empty_cells(capacity_for(len(keys)))
        _fill(cells, rows, readonly(keys, np.uint64))
        return Table(readonly(cells, np.uint64), readonly(rows, np.int32))


@kernel
def _fill(cells: NDArray[np.uint64], rows: NDArray[np.int32], keys: NDArray[np.uint64]) -> None:
    for row in range(keys.shape[0]):
        insert(cells, rows, keys[row], row)


def capacity_for(entries: int) -> int:
    """Return the smallest capacity that `entries` fill by half at most."""
    return max(16, 1 << (2 * entries - 1).bit_length()) if entries else 16


def empty_cells(capacity: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the keys and rows of an empty table."""
    return np.zeros(capacity, np.uint64), np.full(capacity, -1, np.int32)
