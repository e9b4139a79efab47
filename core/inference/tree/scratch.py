"""Scratch buffers of the tree kernels. All are one-dimensional; a kernel uses the part that its sentence needs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import inlined

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Places = NDArray[np.int64]


class Contraction(NamedTuple):
    """For `spanning_tree`. Nodes are the words 1..n, then the contracted cycles n+1..2n-1; N = longest + 1."""

    weights: Floats  # (N * N,) weight of the best arc from head h into the node of row i, at i * (n + 1) + h
    into: Integers  # (N * N,) the word that this arc enters
    top: Integers  # (N,) the outermost node that contains each word
    path: Integers  # (2 N,) the nodes of the current path
    state: Integers  # (2 N,) per node: new, on the path, or done
    parent: Integers  # (2 N,) per node: the cycle that contains it, or 0
    row: Integers  # (2 N,) per node: its row of `weights`
    head: Integers  # (2 N,) per node: the head of the chosen arc
    modifier: Integers  # (2 N,) per node: the word that the chosen arc enters
    gain: Floats  # (2 N,) per node: the weight of the chosen arc


class Spans(NamedTuple):
    """For `projective_tree` and the sums over projective trees. A table has rows of `row_width(n)` entries.

    `right` and `left` are symmetric: the span from s to t is at both [s, t] and [t, s]. So all loops run along rows.
    """

    right: Floats  # a table: complete spans whose head is the left end
    left: Floats  # a table: complete spans whose head is the right end
    arcs: Floats  # a table: spans that are joined by an arc, at [head, modifier]
    joined: Floats  # a table: the same without the score of the arc, at [left end, right end]
    right_out: Floats  # a table: derivatives of log Z; the sum of [s, t] and [t, s] belongs to `right`
    left_out: Floats  # a table: the same for `left`
    arcs_out: Floats  # a table: the same for `arcs`
    line: Floats  # (a row) terms of one sum
    shifts: Floats  # (N,) the highest score of an arc into each word
    stack: Integers  # (2 N,) head and end of spans that are still to be traced


class Elimination(NamedTuple):
    """For the sums over all trees; `matrix_tree` explains it. A graph of k words has k + 1 rows of `row_width(k)`."""

    work: (
        Floats  # the graph of the sentence, then one partly eliminated graph for each level of the bisection
    )
    escape: Floats  # (N rows) for each word, its escape probabilities, then the marginals of the arcs into it
    spare: Floats  # (a row)
    shifts: Floats  # (N,) what is subtracted from the scores of the arcs into each word; at 0, further from root arcs
    begin: Places  # (LEVELS,) per level: the word before its first word
    size: Places  # (LEVELS,) per level: its number of words
    stage: Places  # (LEVELS,) per level: the number of halves that are started
    source: Places  # (LEVELS,) per level: the place of its graph in `work`
    pitch: Places  # (LEVELS,) per level: the width of the rows of this graph
    place: Places  # (LEVELS,) per level: the place of the copy that is eliminated


class TreeScratch(NamedTuple):
    """Scratch for sentences of up to `longest` words."""

    contraction: Contraction
    spans: Spans
    elimination: Elimination


#: Levels of bisection, enough for any sentence that fits in memory.
LEVELS = 32


@inlined
def row_width(n: int) -> int:
    """Return the width of a row for n words and the root, padded to whole vectors."""
    return n // v.LANES * v.LANES + v.LANES


def tree_scratch(longest: int) -> TreeScratch:
    """Allocate scratch for sentences of up to `longest` words."""
    return TreeScratch(_contraction(longest), _spans(longest), _elimination(longest))


def _contraction(longest: int) -> Contraction:
    size = longest + 1
    weights, into, top = np.zeros(size * size), np.zeros(size * size, np.int32), np.zeros(size, np.int32)
    path, state, parent, row, head, modifier = (np.zeros(2 * size, np.int32) for _ in range(6))
    return Contraction(weights, into, top, path, state, parent, row, head, modifier, np.zeros(2 * size))


def _spans(longest: int) -> Spans:
    table = (longest + 1) * row_width(longest) + v.LANES
    right, left, arcs, joined = (v.zeros(table, np.float64) for _ in range(4))
    right_out, left_out, arcs_out = (v.zeros(table, np.float64) for _ in range(3))
    line, shifts = v.zeros(row_width(longest), np.float64), np.zeros(longest + 1)
    stack = np.zeros(2 * (longest + 1), np.int32)
    return Spans(right, left, arcs, joined, right_out, left_out, arcs_out, line, shifts, stack)


def _elimination(longest: int) -> Elimination:
    work, size = (longest + 1) * row_width(longest), longest
    while size > 1:
        work += (size + 1) * row_width(size)
        size = (size + 1) // 2
    escape = v.zeros((longest + 1) * row_width(longest), np.float64)
    spare, shifts = np.zeros(row_width(longest)), np.zeros(longest + 1)
    begin, sizes, stage, source, pitch, place = (np.zeros(LEVELS, np.int64) for _ in range(6))
    graphs = v.zeros(work, np.float64)
    return Elimination(graphs, escape, spare, shifts, begin, sizes, stage, source, pitch, place)
