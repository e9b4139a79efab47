"""Settled weights at work on a problem: exact loss, decoding."""

from collections.abc import Iterator
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import log_chain
from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import ZERO, inner, kernel
from core.learn.problem import Problem, Sequences
from core.learn.rows import (
    EVERYTHING,
    PLAIN,
    Reading,
    Rows,
    gather,
    gather_edges,
    load_edges,
    prefetch,
    prefetch_edges,
    read_edges,
)

#: Tokens worked on between two chances to stop: about a tenth of a second for a few dozen labels.
SLICE_TOKENS = 100_000


class Model(NamedTuple):
    """What a kernel needs to score sequences: rows and how to read them, the shift of the transitions, sizes."""

    rows: Rows
    reading: Reading
    shift: float
    blocks: int  # the first row of the blocks of edge attributes
    labels: int
    width: int


@inner
def score_tokens(data: Sequences, sentence: int, m: Model, psi: Floats, at: int) -> None:
    """Scores of every label at every token of a sentence, into `psi` from row `at` on."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        prefetch(data, token + 4, m.rows, m.reading, m.width)
        gather(data, token, m.rows, m.reading, m.width, psi, (at + token - begin) * m.width)


@kernel
def score_edges(data: Sequences, sentence: int, m: Model, e: Edges, c: Chain, at: int) -> Edges:
    """The transitions of a sentence: those of all, or where there are edge attributes, one matrix a token."""
    if c.matrices.shape[0] == 0:
        return e
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    size = m.labels * m.width
    for token in range(begin + 1, end):
        prefetch_edges(data, token + 1, m.rows, m.reading, m.blocks, m.labels, m.width)
        gather_edges(
            data, token, m.rows, m.reading, m.blocks, m.labels, m.width, e.scores, c.matrices,
            (at + token - begin) * size,
        )  # fmt: skip
    return ch.edges_of_tokens(e, c, m.labels, m.width)


@inner
def scored_loss(gold: float, n: Any, own: Edges, shift: float, m: Model, c: Chain, at: Any) -> float:
    """-log p of labels that score `gold`, from the scores in `c`, which are used up; NaN if only logarithms will do."""
    shifts = ch.exponentiate(c, at, n, own, shift, m.labels, m.width)
    if isnan(shifts):
        return nan
    log_z = ch.forward(c, at, n, own, m.labels, m.width) + shifts
    if not ch.surely_kept(own):
        ch.backward(c, at, n, own, m.labels, m.width)
        if not ch.kept(c, at, n, own, m.width):
            return nan
    return float(log_z - gold)


@inner
def log_loss(gold: float, n: Any, own: Edges, m: Model, c: Chain, at: Any) -> float:
    """The same by logarithms."""
    return float(log_chain.log_forward(c, at, n, own, m.labels, m.width) - gold)


@inner
def sequence_loss(data: Sequences, sentence: int, m: Model, e: Edges, c: Chain, at: Any) -> float:
    """-log p(gold | sentence)."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    score_tokens(data, sentence, m, c.psi, at)
    own = score_edges(data, sentence, m, e, c, at)
    gold = ch.gold_score(c.psi, at, data.gold, begin, n, own, m.width)
    loss = scored_loss(gold, n, own, m.shift, m, c, at)
    if isnan(loss):
        score_tokens(data, sentence, m, c.psi, at)
        score_edges(data, sentence, m, e, c, at)
        loss = log_loss(gold, n, own, m, c, at)
    return loss


@kernel
def sequence_posterior(
    data: Sequences, sentence: int, m: Model, edges: bool, e: Edges, c: Chain, at: Any
) -> float:
    """-log p(gold | sentence), with the marginals in `beta` and expected transitions added to `pairs`.

    Where there are edge attributes, the probabilities of the transitions into each token are in `matrices`.
    """
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    paired = edges or c.matrices.shape[0] > 0
    score_tokens(data, sentence, m, c.psi, at)
    own = score_edges(data, sentence, m, e, c, at)
    gold = ch.gold_score(c.psi, at, data.gold, begin, n, own, m.width)
    shifts = ch.exponentiate(c, at, n, own, m.shift, m.labels, m.width)
    if not isnan(shifts):
        log_z = ch.forward(c, at, n, own, m.labels, m.width) + shifts
        ch.backward(c, at, n, own, m.labels, m.width)
        if ch.kept(c, at, n, own, m.width):
            if paired:
                ch.add_pairs(c, at, n, own, m.labels, m.width)
            return float(log_z - gold)
    score_tokens(data, sentence, m, c.psi, at)
    score_edges(data, sentence, m, e, c, at)
    log_z = log_chain.log_forward(c, at, n, own, m.labels, m.width)
    log_chain.log_backward(c, at, n, own, paired, m.labels, m.width)
    return float(log_z - gold)


@kernel
def _losses(data: Sequences, first: int, last: int, m: Model, e: Edges, c: Chain) -> float:
    loss = 0.0
    denormals = v.flush_denormals()
    for sentence in range(first, last):
        if data.offsets[sentence + 1] > data.offsets[sentence]:
            loss += sequence_loss(data, sentence, m, e, c, ZERO)
    v.restore_denormals(denormals)
    return loss


@kernel
def _decode(
    data: Sequences, first: int, last: int, m: Model, e: Edges, c: Chain, out: NDArray[np.int32]
) -> None:
    for sentence in range(first, last):
        begin, end = data.offsets[sentence], data.offsets[sentence + 1]
        score_tokens(data, sentence, m, c.psi, ZERO)
        if end > begin:
            own = score_edges(data, sentence, m, e, c, ZERO)
            ch.viterbi(c.psi, end - begin, own.scores, own.step, m.labels, m.width, out, begin)


class Weights:
    """Settled weights of a problem: rows of attributes, of transitions, of edge attributes, as in `rows`."""

    def __init__(self, problem: Problem, values: Floats) -> None:
        if values.shape != (problem.rows * problem.width,):
            raise ValueError("weights do not fit the problem")
        self.problem = problem
        self.values = values
        self._rows = Rows(values, np.zeros(problem.rows, values.dtype), EVERYTHING)

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
        """Yield the loss over a training problem slice by slice; their sum is exact for these weights."""
        labels, width = len(self.problem.labels), self.problem.width
        e = ch.edges(labels, self.values.dtype)
        c = ch.chain(problem.longest, labels, self.values.dtype, rich=problem.rich)
        shift = load_edges(self._rows, self.problem.attributes, labels, PLAIN, width, e)
        model = Model(self._rows, PLAIN, shift, self.problem.blocks, labels, width)
        for first, last in slices(problem):
            yield _losses(problem.data, first, last, model, e, c)

    def decode(self, problem: Problem) -> NDArray[np.int32]:
        """Best label of every token."""
        labels, width = len(self.problem.labels), self.problem.width
        e = ch.edges(labels, self.values.dtype)
        c = ch.chain(max(problem.longest, 1), labels, self.values.dtype, rich=problem.rich)
        read_edges(self._rows, self.problem.attributes, labels, PLAIN, width, e)
        model = Model(self._rows, PLAIN, 0.0, self.problem.blocks, labels, width)
        out = np.zeros(problem.tokens, np.int32)
        for first, last in slices(problem):
            _decode(problem.data, first, last, model, e, c, out)
        return out


def slices(problem: Problem) -> Iterator[tuple[int, int]]:
    """Cut the sentences into runs of about SLICE_TOKENS tokens."""
    first = 0
    while first < problem.sentences:
        target = problem.data.offsets[first] + SLICE_TOKENS
        last = max(first + 1, int(np.searchsorted(problem.data.offsets, target, side="right")) - 1)
        yield first, min(last, problem.sentences)
        first = last
