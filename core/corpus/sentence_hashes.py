"""Hashes of sentences, by which equal ones are found."""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.hashing import GOLDEN
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.corpus.bag import Cells
from tagsmith.core.corpus.corpus import Corpus

_FOLD = np.uint64(0x9FB21C651E98DF25)
_SHIFT = np.uint64(29)
_HALF = np.uint64(32)


# Both kernels begin with a large number: from 0, a length, small ids and a product would often be 0 again.


@kernel
def fold_column(ids: Ids, offsets: Places, hashes: NDArray[np.uint64]) -> None:
    """Mix the ids of each sentence into its hash, in order."""
    for sentence in range(hashes.size):
        h = (hashes[sentence] + GOLDEN) ^ np.uint64(offsets[sentence + 1] - offsets[sentence])
        for token in range(offsets[sentence], offsets[sentence + 1]):
            h = (h ^ np.uint64(ids[token])) * _FOLD
            h ^= h >> _SHIFT
        hashes[sentence] = h


@kernel
def _fold_bags(
    starts: Places, ids: Ids, values: NDArray[np.uint32], offsets: Places, hashes: NDArray[np.uint64]
) -> None:
    """Mix the attributes of each token into the hash of its sentence.

    `values` are the bits of the values of attributes. A bag has no order, so the hashes of its attributes are added.
    """
    for sentence in range(hashes.size):
        h = (hashes[sentence] + GOLDEN) ^ np.uint64(offsets[sentence + 1] - offsets[sentence])
        for token in range(offsets[sentence], offsets[sentence + 1]):
            total = np.uint64(starts[token + 1] - starts[token])
            for cell in range(starts[token], starts[token + 1]):
                attribute = ((np.uint64(ids[cell]) << _HALF) ^ np.uint64(values[cell])) * _FOLD
                attribute = (attribute ^ (attribute >> _SHIFT)) * _FOLD
                total += attribute ^ (attribute >> _SHIFT)
            h = (h ^ total) * _FOLD
            h ^= h >> _SHIFT
        hashes[sentence] = h


def sentence_hashes(corpus: Corpus) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the columns and attributes of each sentence. Labels do not count."""
    hashes = np.zeros(corpus.sentences, np.uint64)
    for column in corpus.columns:
        fold_column(column.ids, corpus.offsets, hashes)
    if corpus.bag is not None:
        _fold_cells(corpus.bag.cells, corpus.offsets, hashes)
    return hashes


def bag_hashes(cells: Cells) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the attributes of each token."""
    hashes = np.zeros(cells.tokens, np.uint64)
    _fold_cells(cells, readonly(np.arange(cells.tokens + 1), np.int64), hashes)
    return hashes


def _fold_cells(cells: Cells, offsets: Places, hashes: NDArray[np.uint64]) -> None:
    values = cells.values if cells.values.size else np.ones(cells.ids.size, np.float32)
    _fold_bags(cells.starts, cells.ids, readonly(values.view(np.uint32), np.uint32), offsets, hashes)


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    empty = readonly(np.empty(0, np.int32), np.int32)
    offsets = readonly(np.zeros(1, np.int64), np.int64)
    hashes = np.empty(0, np.uint64)
    fold_column(empty, offsets, hashes)
    _fold_bags(offsets, empty, readonly(np.empty(0, np.uint32), np.uint32), offsets, hashes)
