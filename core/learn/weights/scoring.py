"""Plain weights applied to a problem: exact loss, decoding."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inner, keep_apart, kernel
from tagsmith.core.features.arcs import arc_of
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.inference.tree.solver import solver_of
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tagsmith.core.learn.weights.posterior import score_edges, score_tokens, sequence_loss
from tagsmith.core.learn.weights.rows import PLAIN, Scorer, gather, load_edges, read_edges, rows_of
from tagsmith.core.learn.weights.trees import best_relation, find_tree, lanes_of, words_of

#: Tokens between two opportunities to stop: about a tenth of a second for a few dozen labels.
SLICE_TOKENS = 100_000


@kernel
def _losses(data: Sequences, first: int, last: int, m: Scorer, e: Edges, c: Chain) -> float:
    loss = 0.0
    denormals = v.flush_denormals()
    for sentence in range(first, last):
        if data.offsets[sentence + 1] > data.offsets[sentence]:
            loss += sequence_loss(data, sentence, m, e, c, ZERO)
    v.restore_denormals(denormals)
    return loss


@kernel
def _decode(
    data: Sequences, first: int, last: int, m: Scorer, e: Edges, c: Chain, out: NDArray[np.int32]
) -> None:
    for sentence in range(first, last):
        begin, end = data.offsets[sentence], data.offsets[sentence + 1]
        score_tokens(data, sentence, m, c.psi, ZERO)
        if end > begin and data.trees.present:
            _decode_tree(data, sentence, m, c, out)
        elif end > begin:
            own = score_edges(data, sentence, m, e, c, ZERO)
            ch.viterbi(c.psi, end - begin, own.scores, own.step, m.layout.labels, m.layout.width, out, begin)


@inner
def _decode_tree(data: Sequences, sentence: int, m: Scorer, c: Chain, out: NDArray[np.int32]) -> None:
    """Write the label of each arc of the best tree, and -1 for all others. The scores are in the chain."""
    keep_apart()
    begin, layout = data.offsets[sentence], m.layout
    n = words_of(data.offsets[sentence + 1] - begin)
    find_tree(data, c, n, layout.width)
    heads = solver_of(c.trees).heads
    for token in range(begin, data.offsets[sentence + 1]):
        out[token] = -1
    for modifier in range(1, n + 1):
        arc = arc_of(heads[modifier], modifier, n)
        if lanes_of(data, begin + arc, layout) < layout.width:
            gather(data, begin + arc, m, layout.width, c.psi, arc * layout.width)
        out[begin + arc] = best_relation(c.psi, arc * layout.width, layout.labels)


class Weights:
    """Weights of a problem without pending penalties, in rows in the order of `Layout`."""

    def __init__(self, problem: Problem, values: Floats) -> None:
        if values.shape != (problem.rows * problem.width,):
            raise ValueError("The weights do not have the shape of the problem.")
        self.problem = problem
        self.values = values
        self._rows = rows_of(values, np.zeros(problem.rows, values.dtype))

    @property
    def attribute_rows(self) -> NDArray[Any]:
        """(attributes, labels)"""
        labels, width = len(self.problem.labels), self.problem.width
        return self.values.reshape(-1, width)[: self.problem.attributes, :labels]

    @property
    def transitions(self) -> NDArray[Any]:
        """(labels, labels)"""
        labels, width = len(self.problem.labels), self.problem.width
        return self.values.reshape(-1, width)[self.problem.attributes : self.problem.blocks, :labels]

    @property
    def edge_blocks(self) -> NDArray[Any]:
        """(edge attributes, labels, labels)"""
        labels, width = len(self.problem.labels), self.problem.width
        return self.edge_matrices.reshape(-1, labels, width)[:, :, :labels]

    @property
    def edge_matrices(self) -> NDArray[Any]:
        """(edge attributes, labels * width)"""
        size = len(self.problem.labels) * self.problem.width
        return self.values[self.problem.blocks * self.problem.width :].reshape(-1, size)

    def loss(self, problem: Problem) -> Iterator[float]:
        """Yield the loss over a training problem slice by slice; the sum is exact for these weights."""
        layout = self.problem.layout
        e = ch.edges(layout.labels, self.values.dtype)
        c = problem.chain(problem.longest, self.values.dtype)
        scorer = Scorer(self._rows, PLAIN, load_edges(self._rows, PLAIN, layout, e), layout)
        for first, last in slices(problem):
            yield _losses(problem.data, first, last, scorer, e, c)

    def decode(self, problem: Problem) -> NDArray[np.int32]:
        """Return the best label of every token; of trees, that of every arc, -1 for arcs that the best tree lacks."""
        layout = self.problem.layout
        e = ch.edges(layout.labels, self.values.dtype)
        c = problem.chain(max(problem.longest, 1), self.values.dtype)
        read_edges(self._rows, PLAIN, layout, e)
        scorer = Scorer(self._rows, PLAIN, 0.0, layout)
        out = np.zeros(problem.tokens, np.int32)
        for first, last in slices(problem):
            _decode(problem.data, first, last, scorer, e, c, out)
        return out


def slices(problem: Problem) -> Iterator[tuple[int, int]]:
    """Split the sentences into runs of about SLICE_TOKENS tokens."""
    first = 0
    while first < problem.sentences:
        target = problem.data.offsets[first] + SLICE_TOKENS
        last = max(first + 1, int(np.searchsorted(problem.data.offsets, target, side="right")) - 1)
        yield first, min(last, problem.sentences)
        first = last
