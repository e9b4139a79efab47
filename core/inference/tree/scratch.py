"""Scratch buffers of the tree kernels. All are one-dimensional; a kernel uses the part that its sentence needs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import inlined

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


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

    `right` and `left` are symmetric: the span from s to t is at both [s, t] and [t, s], so that all loops run along rows.
    """

    right: Floats  # a table: complete spans whose head is the left end
    left: Floats  # a table: complete spans whose head is the right end
    arcs: Floats  # a table: spans that are joined by an arc, at [head, modifier]
    joined: Floats  # a table: the same without the score of the arc, at [left end, right end]
    right_out: Floats  # a table: derivatives of log Z; the sum of [s, t] and [t, s] belongs to `right`
    left_out: Floats  # a table: the same for `left`
    arcs_out: Floats  # a table: the same for `arcs`
    line: Floats  # (padded(N) + 8,) terms of one sum
    shifts: Floats  # (N,) the highest score of an arc into each word
    stack: Integers  # (2 N,) head and end of spans that are still to be traced


class Elimination(NamedTuple):
    """For the sums over all trees; `matrix_tree` explains it. Rows have `row_width(k)` entries for k words."""

    weights: Floats  # (N rows) weights of the arcs into each word
    work: Floats  # the partly eliminated graphs, one for each level of the bisection
    escape: Floats  # (N rows) escape probabilities of each word
    spare: Floats  # (padded(N),) one row
    shifts: Floats  # (N,) what was subtracted from the scores of arcs into each word
    levels: NDArray[np.int64]  # (4 * LEVELS,) begin, size, stage and place in `work` of the open ranges


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
    size = longest + 1
    table = size * v.padded(size) + v.LANES
    words = [np.zeros(2 * size, np.int32) for _ in range(7)]
    tops = np.zeros(size, np.int32)
    contraction = Contraction(
        np.zeros(size * size), np.zeros(size * size, np.int32), tops, *words[:6], np.zeros(2 * size)
    )
    tables = [v.zeros(table, np.float64) for _ in range(7)]
    line = v.zeros(v.padded(size) + v.LANES, np.float64)
    spans = Spans(*tables, line, np.zeros(size), words[6])
    return TreeScratch(contraction, spans, _elimination(longest))


def _elimination(longest: int) -> Elimination:
    table = (longest + 1) * v.padded(longest + 1) + v.LANES
    work, size = 0, longest
    while size > 0:
        work += (size + 1) * v.padded(size + 1)
        size = (size + 1) // 2 if size > 1 else 0
    weights, escape = (v.zeros(table, np.float64) for _ in range(2))
    spare = v.zeros(v.padded(longest + 1) + v.LANES, np.float64)
    levels = np.zeros(4 * LEVELS, np.int64)
    return Elimination(
        weights, v.zeros(work + v.LANES, np.float64), escape, spare, np.zeros(longest + 1), levels
    )
