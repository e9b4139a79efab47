"""Settled weights at work on a problem: exact loss, decoding."""

from collections.abc import Iterator
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import kernel
from core.learn.problem import Problem, Sequences
from core.learn.rows import EVERYTHING, PLAIN, Reading, Rows, gather, load_edges, prefetch

#: Tokens worked on between two chances to stop: about a tenth of a second for a few dozen labels.
SLICE_TOKENS = 100_000


class Model(NamedTuple):
    """What a kernel needs to score sequences: rows and how to read them, the shift of the transitions, sizes."""

    rows: Rows
    reading: Reading
    shift: float
    labels: int
    width: int


@kernel
def score_tokens(data: Sequences, sentence: int, m: Model, psi: Floats, at: int) -> None:
    """Scores of every label at every token of a sentence, into `psi` from row `at` on."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        prefetch(data, token + 4, m.rows, m.reading, m.width)
        gather(data, token, m.rows, m.reading, m.width, psi, (at + token - begin) * m.width)


@kernel
def sequence_loss(data: Sequences, sentence: int, m: Model, e: Edges, c: Chain, at: int) -> float:
    """-log p(gold | sentence)."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    score_tokens(data, sentence, m, c.psi, at)
    gold = ch.gold_score(c.psi, at, data.gold, begin, n, e, m.width)
    shifts = ch.exponentiate(c, at, n, m.labels, m.width)
    log_z = ch.forward(c, at, n, e, m.labels, m.width) + shifts + (n - 1) * m.shift
    if isnan(log_z):
        score_tokens(data, sentence, m, c.psi, at)
        log_z = ch.log_forward(c, at, n, e, m.labels, m.width)
    return float(log_z - gold)


@kernel
def sequence_posterior(
    data: Sequences, sentence: int, m: Model, edges: bool, e: Edges, c: Chain, at: int
) -> float:
    """-log p(gold | sentence), with the marginals in `beta` and expected transitions added to `pairs`."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    score_tokens(data, sentence, m, c.psi, at)
    gold = ch.gold_score(c.psi, at, data.gold, begin, n, e, m.width)
    shifts = ch.exponentiate(c, at, n, m.labels, m.width)
    log_z = ch.forward(c, at, n, e, m.labels, m.width) + shifts + (n - 1) * m.shift
    if isnan(log_z) or not ch.backward(c, at, n, e, m.labels, m.width):
        score_tokens(data, sentence, m, c.psi, at)
        log_z = ch.log_forward(c, at, n, e, m.labels, m.width)
        ch.log_backward(c, at, n, e, log_z, edges, m.labels, m.width)
    elif edges:
        ch.add_pairs(c, at, n, e, m.labels, m.width)
    return float(log_z - gold)


@kernel
def _losses(data: Sequences, first: int, last: int, m: Model, e: Edges, c: Chain) -> float:
    loss = 0.0
    denormals = v.flush_denormals()
    for sentence in range(first, last):
        if data.offsets[sentence + 1] > data.offsets[sentence]:
            loss += sequence_loss(data, sentence, m, e, c, 0)
    v.restore_denormals(denormals)
    return loss


@kernel
def _decode(
    data: Sequences, first: int, last: int, m: Model, e: Edges, scores: Floats, out: NDArray[np.int32]
) -> None:
    for sentence in range(first, last):
        begin, end = data.offsets[sentence], data.offsets[sentence + 1]
        score_tokens(data, sentence, m, scores, 0)
        if end > begin:
            ch.viterbi(scores, end - begin, e.scores, e.backward, m.labels, m.width, out, begin)


@kernel
def transpose(source: Floats, labels: int, width: int, out: Floats) -> None:
    """Write the transitions the other way round, as Viterbi reads them on its way back."""
    for i in range(labels):
        for j in range(labels):
            out[j * width + i] = source[i * width + j]


class Weights:
    """Settled weights of a problem: rows of attributes, then of transitions, as in `rows`."""

    def __init__(self, problem: Problem, values: Floats) -> None:
        labels, width = len(problem.labels), problem.width
        if values.shape != ((problem.attributes + labels) * width,):
            raise ValueError("weights do not fit the problem")
        self.problem = problem
        self.values = values
        self._rows = Rows(values, np.zeros(problem.attributes + labels, values.dtype), EVERYTHING)

    @property
    def attribute_rows(self) -> NDArray[Any]:
        """(attributes, labels)"""
        labels, width = len(self.problem.labels), self.problem.width
        return self.values.reshape(-1, width)[: self.problem.attributes, :labels]

    @property
    def transitions(self) -> NDArray[Any]:
        """(labels, labels)"""
        labels, width = len(self.problem.labels), self.problem.width
        return self.values.reshape(-1, width)[self.problem.attributes :, :labels]

    def loss(self, problem: Problem) -> Iterator[float]:
        """Yield the loss over a training problem slice by slice; their sum is exact for these weights."""
        labels, width = len(self.problem.labels), self.problem.width
        e, c = ch.edges(labels, self.values.dtype), ch.chain(problem.longest, labels, self.values.dtype)
        shift = load_edges(self._rows, self.problem.attributes, labels, PLAIN, width, e)
        for first, last in slices(problem):
            yield _losses(problem.data, first, last, Model(self._rows, PLAIN, shift, labels, width), e, c)

    def decode(self, problem: Problem) -> NDArray[np.int32]:
        """Best label of every token."""
        labels, width = len(self.problem.labels), self.problem.width
        e = ch.edges(labels, self.values.dtype)
        load_edges(self._rows, self.problem.attributes, labels, PLAIN, width, e)
        transpose(e.scores, labels, width, e.backward)
        scores = np.zeros(max(problem.longest, 1) * width, self.values.dtype)
        out = np.zeros(problem.tokens, np.int32)
        for first, last in slices(problem):
            _decode(problem.data, first, last, Model(self._rows, PLAIN, 0.0, labels, width), e, scores, out)
        return out


def slices(problem: Problem) -> Iterator[tuple[int, int]]:
    """Cut the sentences into runs of about SLICE_TOKENS tokens."""
    first = 0
    while first < problem.sentences:
        target = problem.data.offsets[first] + SLICE_TOKENS
        last = max(first + 1, int(np.searchsorted(problem.data.offsets, target, side="right")) - 1)
        yield first, min(last, problem.sentences)
        first = last
