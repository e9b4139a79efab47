"""Kernels over dependency trees.

Each word has a head: the number of a word of its sentence, counted from 1, or 0 for a root. Words and heads form a tree
below an artificial root if no word is its own ancestor. A sentence may have several roots.
"""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.jit import kernel, readonly


@kernel
def word_in_cycle(heads: Ids, first: int, last: int, marks: Places) -> int:
    """Return a word of a cycle of the sentence heads[first:last], or 0 if it is a tree.

    Walks from every word towards the root, and stops at words that an earlier walk has marked: linear time.
    `marks` (words + 1,) is scratch space.
    """
    marks[: last - first + 1] = 0
    for start in range(1, last - first + 1):
        word = start
        while word != 0 and marks[word] == 0:
            marks[word] = start
            word = heads[first + word - 1]
        if word != 0 and marks[word] == start:
            return word
    return 0


@kernel
def _first_fault(heads: Ids, offsets: Places, marks: Places) -> int:
    """Return the first sentence whose heads are not a tree, or -1."""
    for sentence in range(offsets.size - 1):
        first, last = offsets[sentence], offsets[sentence + 1]
        for token in range(first, last):
            if heads[token] < 0 or heads[token] > last - first:
                return sentence
        if word_in_cycle(heads, first, last, marks):
            return sentence
    return -1


@kernel
def _find_nonprojective(heads: Ids, offsets: Places, scratch: Places, found: NDArray[np.bool_]) -> None:
    """Mark the sentences in which the words below some word are not adjacent.

    `scratch` (4, words + 1) holds for each word the first and the last word below it, the number of words below it, and
    its children that are not counted yet. A word is counted when all of its children are.
    """
    low, high, size, waiting = scratch[0], scratch[1], scratch[2], scratch[3]
    for sentence in range(found.size):
        first = offsets[sentence] - 1
        words = offsets[sentence + 1] - offsets[sentence]
        for word in range(words + 1):
            low[word], high[word], size[word], waiting[word] = word, word, 1, 0
        for word in range(1, words + 1):
            waiting[heads[first + word]] += 1
        found[sentence] = False
        for start in range(1, words + 1):
            word = start
            while word != 0 and waiting[word] == 0:
                waiting[word] = -1
                if high[word] - low[word] + 1 != size[word]:
                    found[sentence] = True
                head = int(heads[first + word])
                low[head] = min(low[head], low[word])
                high[head] = max(high[head], high[word])
                size[head] += size[word]
                waiting[head] -= 1
                word = head


def fault_in(heads: Ids, offsets: Places) -> int | None:
    """Return the first sentence whose heads are not a tree; None if all are."""
    marks = np.empty(_longest(offsets) + 1, np.int64)
    sentence = int(_first_fault(readonly(heads, np.int32), readonly(offsets, np.int64), marks))
    return None if sentence < 0 else sentence


def nonprojective(heads: Ids, offsets: Places) -> NDArray[np.bool_]:
    """Return which sentences have crossing arcs, those from the artificial root included. `heads` must be trees."""
    found = np.empty(offsets.size - 1, np.bool_)
    scratch = np.empty((4, _longest(offsets) + 1), np.int64)
    _find_nonprojective(readonly(heads, np.int32), readonly(offsets, np.int64), scratch, found)
    return found


def root_counts(heads: Ids, offsets: Places) -> Places:
    """Return the number of roots of each sentence."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(heads == 0)])
    counts: Places = np.diff(before[offsets])
    return counts


def word_numbers(offsets: Places) -> Places:
    """Return the number of each word within its sentence, from 1."""
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    numbers: Places = np.arange(1, int(offsets[-1]) + 1) - starts
    return numbers


def _longest(offsets: Places) -> int:
    return int(np.diff(offsets).max(initial=0))


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    heads, offsets = np.zeros(1, np.int32), np.array([0, 1], np.int64)
    fault_in(heads, offsets)
    nonprojective(heads, offsets)
