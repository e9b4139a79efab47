"""The existing parameters: for each row, the labels for which it can have a weight.

Rows have the order of `Layout`. With `pairs: "seen"`, a weight exists for each attribute and label that occur together
in the training data, as in CRFsuite (for an edge attribute: a label pair). With `"all"`, a weight exists for every
combination. `transitions` determines the same for label pairs alone, and `min_frequency` drops rare combinations. A
problem can restrict these further to the parameters that an earlier stage selected (`trainable`).
Quasi-Newton works only on the vector of these parameters, in row order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import offsets_of
from tagsmith.core.base.jit import kernel, readonly
from tagsmith.core.inference.chain import Floats
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tagsmith.core.learn.weights.posterior import is_complete, weight_of
from tagsmith.core.learn.weights.rows import EVERYTHING, edge_row, value_of


class Pairs(NamedTuple):
    """Parameters `starts[r]:starts[r+1]` belong to row r, with their labels in ascending order."""

    starts: NDArray[np.int64]  # (rows + 1,)
    labels: NDArray[np.int32]  # (parameters,)


@kernel
def _mark(data: Sequences, layout: Layout, marks: NDArray[np.bool_]) -> None:
    """Set marks[row * labels + y] if row and label y occur together in the gold data. Tokens without a label do not."""
    attributes, labels, edges = layout.attributes, layout.labels, layout.edges
    for sentence in range(data.offsets.shape[0] - 1):
        begin = data.offsets[sentence]
        for token in range(begin, data.offsets[sentence + 1]):
            y = data.gold[token]
            before = data.gold[token - 1] if token > begin else -1
            if y < 0:
                continue
            for k in range(data.starts[token], data.starts[token + 1]):
                marks[np.int64(data.rows[k]) * labels + y] = True
                if data.trees.present:
                    marks[np.int64(data.rows[k]) * labels] = True
            if edges and before >= 0:
                marks[np.int64(attributes + before) * labels + y] = True
            if data.rich and before >= 0:
                for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                    marks[(edge_row(data, k, layout) + before) * labels + y] = True


def seen_marks(problem: Problem) -> NDArray[np.bool_]:
    """Return which parameters occur in the gold data, (rows, labels)."""
    labels = len(problem.labels)
    marks = np.zeros(problem.rows * labels, np.bool_)
    _mark(problem.data, problem.layout, marks)
    return marks.reshape(-1, labels)


def existing_marks(problem: Problem) -> NDArray[np.bool_]:
    """Return which parameters exist, (rows, labels)."""
    existing, first, last = problem.existing, problem.attributes, problem.blocks
    seen = existing.seen_pairs or existing.seen_transitions
    marks = seen_marks(problem) if seen else np.ones((problem.rows, len(problem.labels)), np.bool_)
    if not existing.seen_pairs:
        marks[:first] = marks[last:] = True
    if not existing.seen_transitions:
        marks[first:last] = problem.edges
    if existing.min_frequency > 0:
        marks &= gold_frequencies(problem) >= existing.min_frequency
    if problem.trainable is not None:
        bits = np.unpackbits(problem.trainable, bitorder="little").reshape(problem.rows, -1)
        marks &= bits[:, : len(problem.labels)].astype(np.bool_)
    return marks


def mask_of(problem: Problem) -> NDArray[np.uint8]:
    """Return the mask of `Rows`: one bit per weight, or empty if every weight exists."""
    if problem.existing.all:
        return EVERYTHING if problem.trainable is None else problem.trainable
    marks = existing_marks(problem)
    padded = np.zeros((len(marks), problem.width), np.bool_)
    padded[:, : marks.shape[1]] = marks
    return readonly(np.packbits(padded, axis=1, bitorder="little").reshape(-1), np.uint8)


def pairs_of(problem: Problem) -> Pairs:
    """Enumerate the parameters of a problem."""
    return pairs_of_marks(existing_marks(problem))


def pairs_of_marks(marks: NDArray[Any]) -> Pairs:
    """Return the marked parameters of a table of rows and labels."""
    starts = offsets_of(np.count_nonzero(marks, axis=1))
    return Pairs(starts, readonly(np.nonzero(marks)[1], np.int32))


@kernel
def _count_gold(data: Sequences, layout: Layout, in_loss: bool, counts: Floats) -> None:
    """Count the features of gold labels or, with `in_loss`, those of complete sentences by the sentences' weights."""
    attributes, labels, edges = layout.attributes, layout.labels, layout.edges
    for sentence in range(data.offsets.shape[0] - 1):
        if in_loss and not is_complete(data, sentence):
            continue
        weight = np.float64(weight_of(data, sentence)) if in_loss else 1.0
        begin = data.offsets[sentence]
        for token in range(begin, data.offsets[sentence + 1]):
            y = data.gold[token]
            before = data.gold[token - 1] if token > begin else -1
            if y < 0:
                continue
            for k in range(data.starts[token], data.starts[token + 1]):
                counts[np.int64(data.rows[k]) * labels + y] += weight * value_of(data, k)
                if data.trees.present and y > 0:
                    counts[np.int64(data.rows[k]) * labels] += weight * value_of(data, k)
            if edges and before >= 0:
                counts[np.int64(attributes + before) * labels + y] += weight
            if data.rich and before >= 0:
                for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                    counts[(edge_row(data, k, layout) + before) * labels + y] += weight


@kernel
def _picked(pairs: Pairs, labels: int, dense: Floats, out: Floats) -> None:
    for row in range(pairs.starts.shape[0] - 1):
        for p in range(pairs.starts[row], pairs.starts[row + 1]):
            out[p] = dense[row * labels + pairs.labels[p]]


def gold_frequencies(problem: Problem) -> NDArray[np.float64]:
    """Return how often each feature fires at tokens with a gold label, weighted by value, (rows, labels)."""
    return _counted(problem, in_loss=False).reshape(-1, len(problem.labels))


def _counted(problem: Problem, *, in_loss: bool) -> NDArray[np.float64]:
    dense = np.zeros(problem.rows * len(problem.labels))
    _count_gold(problem.data, problem.layout, in_loss, dense)
    return dense


def gold_counts(problem: Problem, pairs: Pairs) -> NDArray[np.float64]:
    """Return the gold part of the gradient of the loss: how often the feature of each parameter fires in complete
    sentences, by their weights. (For other sentences, the posterior subtracts the allowed labellings itself.)
    """
    labels = len(problem.labels)
    dense = _counted(problem, in_loss=True)
    counts = np.empty(len(pairs.labels))
    _picked(pairs, labels, dense, counts)
    return readonly(counts, np.float64)
