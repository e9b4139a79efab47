"""From a sentence to loss and direction: the only module in which trainers use the probabilities of a model.

    loss = -log p(y | x; w) = log Z - score(gold),   direction = -d loss / d score = gold - expected

The kernels score a sentence from weight rows, sum over all labellings (`inference.posterior`: scaled, with log space as
fallback), and subtract gold. `sequence_loss` computes only the loss. `sequence_posterior` also computes the marginals.
`sequence_direction` and `batch_direction` compute the direction. Every probabilistic trainer calls one of them and uses
only the buffers they fill.

Extensions belong here. A weight per sentence would scale the loss and the direction. Partial labels would replace the
gold score by the log Z of the allowed labellings, and gold by the marginals among those. A structure other than a chain
would replace the sums of `inference.posterior`, and the meaning of `beta`, `pairs` and `matrices`.
"""

from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, keep_apart, kernel
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.inference.posterior import Sums, by_logarithms, by_scaling
from tagsmith.core.learn.problem.problem import Sequences
from tagsmith.core.learn.weights.rows import Scorer, gather, gather_edges, prefetch, prefetch_edges


class Buffers(NamedTuple):
    """The buffers for processing sentences."""

    edges: Edges  # transitions that all tokens share
    chain: Chain


class Sample(NamedTuple):
    """The sentences of one update: `order[first:last]`."""

    order: NDArray[np.int64]  # (sentences,) the order of a pass
    first: int
    last: int


@inner
def score_tokens(data: Sequences, sentence: int, m: Scorer, psi: Floats, at: int) -> None:
    """Write the score of every label at every token of a sentence to `psi`, from row `at` on."""
    keep_apart()
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        prefetch(data, token + 4, m)
        gather(data, token, m, psi, (at + token - begin) * m.layout.width)


@kernel
def score_edges(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: int) -> Edges:
    """Return the transitions of a sentence: shared by all tokens or, with rich edges, one matrix per token."""
    if not c.rich:
        return e
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    size = m.layout.labels * m.layout.width
    for token in range(begin + 1, end):
        prefetch_edges(data, token + 1, m)
        gather_edges(data, token, m, e.scores, c.matrices, (at + token - begin) * size)
    return ch.edges_of_tokens(e, c, m.layout.labels, m.layout.width)


@inner
def _loss(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any, sums: Sums) -> float:
    """Return -log p(gold | sentence), and compute the requested sums in the chain."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    labels, width = m.layout.labels, m.layout.width
    score_tokens(data, sentence, m, c.psi, at)
    own = score_edges(data, sentence, m, e, c, at)
    gold = ch.gold_score(c.psi, at, data.gold, begin, n, own, width)
    log_z = by_scaling(c, at, n, own, m.shift, sums, labels, width)
    if isnan(log_z):
        score_tokens(data, sentence, m, c.psi, at)
        score_edges(data, sentence, m, e, c, at)
        log_z = by_logarithms(c, at, n, own, sums, labels, width)
    return float(log_z - gold)


@inner
def sequence_loss(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any) -> float:
    """Return -log p(gold | sentence)."""
    return _loss(data, sentence, m, e, c, at, Sums.LOG_Z)


@kernel
def sequence_posterior(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any) -> float:
    """Return -log p(gold | sentence); write the marginals to `beta` and add expected transitions to `pairs`.

    With rich edges, `matrices` holds the probabilities of the transitions into each token.
    """
    sums = Sums.PAIRS if m.layout.edges or c.rich else Sums.MARGINALS
    return _loss(data, sentence, m, e, c, at, sums)


@inner
def sequence_direction(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any) -> float:
    """Return -log p(gold | sentence); write gold - marginals to `beta` and, with rich edges, to `matrices`.

    Adds the expected transitions to `pairs`, which can accumulate several sentences: see `subtract_gold_pairs`.
    """
    loss = sequence_posterior(data, sentence, m, e, c, at)
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    width, kind = m.layout.width, c.beta.dtype.type
    for t in range(n):
        row = (at + t) * width
        _negate(c.beta, row, row + width)
        c.beta[row + data.gold[begin + t]] += kind(1)
    if c.rich:
        size = m.layout.labels * width
        for t in range(1, n):
            first = (at + t) * size
            _negate(c.matrices, first, first + size)
            c.matrices[first + data.gold[begin + t - 1] * width + data.gold[begin + t]] += kind(1)
    return loss


@inlined
def _negate(x: Floats, first: Any, last: Any) -> None:
    minus = v.splat(x.dtype.type(-1))
    for k in range(first, last, v.LANES):
        v.store(x, k, v.multiply(v.load(x, k), minus))


@inner
def subtract_gold_pairs(data: Sequences, s: Sample, pairs: Floats, width: int) -> None:
    """Convert the expected transitions of a sample to its direction: gold counts - expected."""
    _negate(pairs, ZERO, pairs.shape[0])
    for i in range(s.first, s.last):
        for token in range(data.offsets[s.order[i]] + 1, data.offsets[s.order[i] + 1]):
            pairs[data.gold[token - 1] * width + data.gold[token]] += pairs.dtype.type(1)


@inlined
def batch_direction(data: Sequences, s: Sample, m: Scorer, b: Buffers) -> tuple[float, bool]:
    """Write gold - expected of a sample to `beta`, `pairs` and, with rich edges, `matrices`.

    Returns the loss of the sample, and whether `pairs` has a direction.
    """
    b.chain.pairs[:] = 0
    at, paired, loss = ZERO, False, 0.0
    for i in range(s.first, s.last):
        n = data.offsets[s.order[i] + 1] - data.offsets[s.order[i]]
        if n > 0:
            loss += sequence_direction(data, s.order[i], m, b.edges, b.chain, at)
            paired |= m.layout.edges and n > 1
            at += n
    if paired:
        subtract_gold_pairs(data, s, b.chain.pairs, m.layout.width)
    return loss, paired
