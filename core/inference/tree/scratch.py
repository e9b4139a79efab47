"""Scratch buffers of the tree kernels. All are one-dimensional; a kernel uses the part that its sentence needs.

All buffers of one element type are parts of one array, so that callers can pass three arrays instead of thirty.
"""

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


class TreeMemory(NamedTuple):
    """The arrays that all buffers are parts of."""

    floats: Floats
    integers: Integers
    places: Places


#: Levels of bisection, enough for any sentence that fits in memory.
LEVELS = 32


@inlined
def row_width(n: int) -> int:
    """Return the width of a row for n words and the root, padded to whole vectors."""
    return n // v.LANES * v.LANES + v.LANES


def memory_for(longest: int) -> TreeMemory:
    """Allocate memory for sentences of up to `longest` words."""
    floats, integers, places = _sizes(longest)
    return TreeMemory(v.zeros(floats, np.float64), np.zeros(integers, np.int32), np.zeros(places, np.int64))


def tree_scratch(longest: int) -> TreeScratch:
    """Allocate scratch for sentences of up to `longest` words."""
    return _divided(longest, *memory_for(longest))


def _sizes(longest: int) -> tuple[int, int, int]:
    """Return the numbers of elements that `_divided` takes from each array."""
    side, table, line = longest + 1, (longest + 1) * row_width(longest) + v.LANES, row_width(longest)
    graphs, size = side * line, longest
    while size > 1:
        graphs += (size + 1) * row_width(size)
        size = (size + 1) // 2
    floats = (
        -(-side * side // v.LANES) * v.LANES
        + 2 * line
        + 7 * table
        + 2 * line
        + graphs
        + side * line
        + 2 * line
    )
    return floats, side * side + 15 * side, 6 * LEVELS


def _divided(longest: int, floats: Floats, integers: Integers, places: Places) -> TreeScratch:
    """Divide memory into buffers. Floats begin at whole vectors."""
    side, table, line = longest + 1, (longest + 1) * row_width(longest) + v.LANES, row_width(longest)
    weights, at = floats[: side * side], -(-side * side // v.LANES) * v.LANES
    gain, at = floats[at : at + 2 * side], at + 2 * line
    right, at = floats[at : at + table], at + table
    left, at = floats[at : at + table], at + table
    arcs, at = floats[at : at + table], at + table
    joined, at = floats[at : at + table], at + table
    right_out, at = floats[at : at + table], at + table
    left_out, at = floats[at : at + table], at + table
    arcs_out, at = floats[at : at + table], at + table
    terms, at = floats[at : at + line], at + line
    span_shifts, at = floats[at : at + side], at + line
    escape, at = floats[at : at + side * line], at + side * line
    spare, at = floats[at : at + line], at + line
    shifts, graphs = floats[at : at + side], floats[at + line :]
    into, k = integers[: side * side], side * side
    contraction = Contraction(
        weights,
        into,
        integers[k : k + side],
        integers[k + side : k + 3 * side],
        integers[k + 3 * side : k + 5 * side],
        integers[k + 5 * side : k + 7 * side],
        integers[k + 7 * side : k + 9 * side],
        integers[k + 9 * side : k + 11 * side],
        integers[k + 11 * side : k + 13 * side],
        gain,
    )
    stack = integers[k + 13 * side : k + 15 * side]
    spans = Spans(right, left, arcs, joined, right_out, left_out, arcs_out, terms, span_shifts, stack)
    elimination = Elimination(
        graphs,
        escape,
        spare,
        shifts,
        places[:LEVELS],
        places[LEVELS : 2 * LEVELS],
        places[2 * LEVELS : 3 * LEVELS],
        places[3 * LEVELS : 4 * LEVELS],
        places[4 * LEVELS : 5 * LEVELS],
        places[5 * LEVELS : 6 * LEVELS],
    )
    return TreeScratch(contraction, spans, elimination)


#: The same for kernels.
sizes, divided = inlined(_sizes), inlined(_divided)
