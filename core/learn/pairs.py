"""The parameters that exist: for each row, the labels it may have a weight for.

Rows are those of `rows`: attributes, transitions out of a label, blocks of edge attributes. With `pairs: "seen"` a
weight exists for an attribute and a label (of an edge attribute, a pair of labels) that occur together in the training
data, as in CRFsuite; with `"all"` for every combination.
Quasi-Newton works on the vector of these parameters and nothing else, in the order of the rows.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference.chain import Floats
from core.jit import kernel, readonly
from core.learn.problem import Problem, Sequences, offsets_of
from core.learn.rows import EVERYTHING, edge_row


class Pairs(NamedTuple):
    """Parameters `starts[r]:starts[r+1]` belong to row r, for these labels in rising order."""

    starts: NDArray[np.int64]  # (rows + 1,)
    labels: NDArray[np.int32]  # (parameters,)


class Occurrences(NamedTuple):
    """Where each attribute occurs: tokens `starts[a]:starts[a+1]`, in the order of the text."""

    starts: NDArray[np.int64]  # (attributes + 1,)
    tokens: NDArray[np.int32]
    values: NDArray[np.float32]  # empty when all are 1


@kernel
def _mark(data: Sequences, attributes: int, labels: int, edges: bool, marks: NDArray[np.bool_]) -> None:
    """marks[row * labels + y]: whether row and label y occur together in the gold data."""
    for sentence in range(data.offsets.shape[0] - 1):
        begin = data.offsets[sentence]
        for token in range(begin, data.offsets[sentence + 1]):
            y = data.gold[token]
            for k in range(data.starts[token], data.starts[token + 1]):
                marks[np.int64(data.rows[k]) * labels + y] = True
            if edges and token > begin:
                marks[np.int64(attributes + data.gold[token - 1]) * labels + y] = True
            if data.edge_starts.shape[0] > 0 and token > begin:
                for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                    row = edge_row(data, k, attributes + labels, labels) + data.gold[token - 1]
                    marks[row * labels + y] = True


def seen_marks(problem: Problem) -> NDArray[np.bool_]:
    """(rows, labels): which parameters the gold data supports."""
    labels = len(problem.labels)
    marks = np.zeros(problem.rows * labels, np.bool_)
    _mark(problem.data, problem.attributes, labels, problem.edges, marks)
    return marks.reshape(-1, labels)


def mask_of(problem: Problem) -> NDArray[np.uint8]:
    """The mask of `Rows`: a bit a weight, or empty when every weight exists."""
    if not problem.seen_pairs:
        return EVERYTHING
    marks = seen_marks(problem)
    padded = np.zeros((len(marks), problem.width), np.bool_)
    padded[:, : marks.shape[1]] = marks
    return readonly(np.packbits(padded, axis=1, bitorder="little").reshape(-1), np.uint8)


def pairs_of(problem: Problem) -> Pairs:
    """Enumerate the parameters of a problem."""
    labels = len(problem.labels)
    if problem.seen_pairs:
        marks = seen_marks(problem)
    else:
        marks = np.ones((problem.rows, labels), np.bool_)
        marks[problem.attributes : problem.blocks] = problem.edges
    return pairs_of_marks(marks)


def pairs_of_marks(marks: NDArray[Any]) -> Pairs:
    """The parameters that are marked, in a table of rows and labels."""
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(marks, axis=1))])
    return Pairs(readonly(starts, np.int64), readonly(np.nonzero(marks)[1], np.int32))


@kernel
def _count_gold(data: Sequences, attributes: int, labels: int, edges: bool, counts: Floats) -> None:
    for sentence in range(data.offsets.shape[0] - 1):
        begin = data.offsets[sentence]
        for token in range(begin, data.offsets[sentence + 1]):
            y = data.gold[token]
            for k in range(data.starts[token], data.starts[token + 1]):
                value = data.values[k] if data.values.shape[0] > 0 else np.float32(1)
                counts[np.int64(data.rows[k]) * labels + y] += value
            if edges and token > begin:
                counts[np.int64(attributes + data.gold[token - 1]) * labels + y] += 1.0
            if data.edge_starts.shape[0] > 0 and token > begin:
                for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                    row = edge_row(data, k, attributes + labels, labels) + data.gold[token - 1]
                    counts[row * labels + y] += 1.0


@kernel
def _picked(pairs: Pairs, labels: int, dense: Floats, out: Floats) -> None:
    for row in range(pairs.starts.shape[0] - 1):
        for p in range(pairs.starts[row], pairs.starts[row + 1]):
            out[p] = dense[row * labels + pairs.labels[p]]


def gold_frequencies(problem: Problem) -> NDArray[np.float64]:
    """(rows, labels): how often each feature fires in the gold data, by value."""
    labels = len(problem.labels)
    dense = np.zeros(problem.rows * labels)
    _count_gold(problem.data, problem.attributes, labels, problem.edges, dense)
    return dense.reshape(-1, labels)


def gold_counts(problem: Problem, pairs: Pairs) -> NDArray[np.float64]:
    """How often each parameter's feature fires in the gold data."""
    labels = len(problem.labels)
    dense = gold_frequencies(problem).reshape(-1)
    counts = np.empty(len(pairs.labels))
    _picked(pairs, labels, dense, counts)
    return readonly(counts, np.float64)


@kernel
def _invert(
    starts: NDArray[np.int64], rows: NDArray[np.int32], given: NDArray[np.float32], places: NDArray[np.int64],
    tokens: NDArray[np.int32], values: NDArray[np.float32],
) -> None:  # fmt: skip
    """Counting sort of the cells by attribute; `places` holds each attribute's first place and is moved to its end."""
    for token in range(starts.shape[0] - 1):
        for k in range(starts[token], starts[token + 1]):
            place = places[rows[k]]
            tokens[place] = token
            if values.shape[0] > 0:
                values[place] = given[k]
            places[rows[k]] = place + 1


def occurrences_of(problem: Problem) -> Occurrences:
    """Turn the attributes of tokens into the tokens of attributes."""
    data = problem.data
    return _inverted(data.starts, data.rows, data.values, problem.attributes)


def edge_occurrences_of(problem: Problem) -> Occurrences:
    """The same of edge attributes."""
    data = problem.data
    return _inverted(data.edge_starts, data.edge_rows, data.values[:0], problem.edge_attributes)


def _inverted(
    starts: NDArray[np.int64], rows: NDArray[np.int32], values: NDArray[np.float32], attributes: int
) -> Occurrences:
    places = offsets_of(np.bincount(rows, minlength=attributes))
    tokens, sorted_values = np.empty(len(rows), np.int32), np.empty(len(values), np.float32)
    _invert(starts, rows, values, places[:-1].copy(), tokens, sorted_values)
    return Occurrences(places, readonly(tokens, np.int32), readonly(sorted_values, np.float32))
