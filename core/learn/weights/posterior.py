"""From a sentence to loss and direction: the only module in which trainers use the probabilities of a model.

    loss = -log p(y | x; w) = log Z - score(gold),   direction = -d loss / d score = gold - expected

If some tokens have no label or a set of labels, gold is the set G of the labellings they allow:

    loss = log Z - log Z(G),   direction = E[. | G] - expected

where Z(G) sums over G only (Tsuboi et al. 2008). A weight of a sentence multiplies its loss and its direction.

The kernels score a sentence from weight rows, sum over all labellings (`inference.posterior`: scaled, with log space as
fallback), and subtract gold. `sequence_loss` computes only the loss. `sequence_posterior` also computes the marginals.
`sequence_direction` and `batch_direction` compute the direction. Every probabilistic trainer calls one of them and uses
only the buffers they fill.

If the sentences are dependency trees, their "tokens" are arcs, and `weights.trees` replaces the sums over labellings.
`beta` then holds the probabilities of arcs and relations.
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
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Sequences
from tagsmith.core.learn.weights.rows import Scorer, gather, gather_edges, prefetch, prefetch_edges
from tagsmith.core.learn.weights.trees import add_gold, lanes_of, tree_loss


class Buffers(NamedTuple):
    """The buffers for processing sentences."""

    edges: Edges  # transitions that all tokens share
    chain: Chain


class Sample(NamedTuple):
    """The sentences of one update: `order[first:last]`."""

    order: NDArray[np.int64]  # (sentences,) the order of a pass
    first: int
    last: int


#: The score of a label that is not allowed. Its exponential vanishes, and sums over any sentence stay finite.
FORBIDDEN = -1e30


@inlined
def weight_of(data: Sequences, sentence: Any) -> Any:
    """Return how much a sentence counts."""
    return data.weights[sentence] if data.weighted else np.float32(1)


@inlined
def is_complete(data: Sequences, sentence: Any) -> Any:
    """Whether every token of a sentence has one label."""
    return not data.partial or data.complete[sentence]


@inlined
def is_allowed(data: Sequences, token: Any, y: Any, width: int) -> Any:
    """Whether a token may have label y."""
    bit = token * width + y
    return (data.allowed[bit // v.LANES] >> np.uint8(bit % v.LANES)) & np.uint8(1) != 0


@inner
def forbid(data: Sequences, sentence: int, psi: Floats, at: Any, layout: Layout) -> None:
    """Overwrite the scores of all labels that a sentence does not allow."""
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        row = (at + token - begin) * layout.width
        for y in range(layout.labels):
            if not is_allowed(data, token, y, layout.width):
                psi[row + y] = FORBIDDEN


@inner
def score_tokens(data: Sequences, sentence: int, m: Scorer, psi: Floats, at: int) -> None:
    """Write the score of every label at every token of a sentence to `psi`, from row `at` on."""
    keep_apart()
    if data.trees.present:
        _score_arcs(data, sentence, m, psi, at)
        return
    begin, end, width = data.offsets[sentence], data.offsets[sentence + 1], m.layout.width
    for token in range(begin, end):
        prefetch(data, token + 4, m, width)
        gather(data, token, m, width, psi, (at + token - begin) * width)


@inner
def _score_arcs(data: Sequences, sentence: int, m: Scorer, psi: Floats, at: int) -> None:
    """The same for arcs, of which most need no scores of relations. Apart, so that chains have a fixed loop."""
    keep_apart()
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        lanes = lanes_of(data, token, m.layout)
        prefetch(data, token + 4, m, lanes)
        gather(data, token, m, lanes, psi, (at + token - begin) * m.layout.width)


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
    if data.trees.present:
        score_tokens(data, sentence, m, c.psi, at)
        return tree_loss(data, sentence, m.layout, c, at, sums != Sums.LOG_Z)
    complete, gold = is_complete(data, sentence), 0.0
    if not complete:
        gold = _among_allowed(data, sentence, m, e, c, at, sums)
    score_tokens(data, sentence, m, c.psi, at)
    own = score_edges(data, sentence, m, e, c, at)
    if complete:
        gold = ch.gold_score(c.psi, at, data.gold, begin, n, own, width)
    log_z = by_scaling(c, at, n, own, m.shift, sums, labels, width)
    if isnan(log_z):
        score_tokens(data, sentence, m, c.psi, at)
        score_edges(data, sentence, m, e, c, at)
        log_z = by_logarithms(c, at, n, own, sums, labels, width)
    return float(log_z - gold)


@inner
def _among_allowed(
    data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any, sums: Sums
) -> float:
    """Return log Z(G), the sum over the allowed labellings; hold their marginals and subtract their transitions."""
    keep_apart()
    n, labels, width = data.offsets[sentence + 1] - data.offsets[sentence], m.layout.labels, m.layout.width
    score_tokens(data, sentence, m, c.psi, at)
    own = score_edges(data, sentence, m, e, c, at)
    forbid(data, sentence, c.psi, at, m.layout)
    scale(c.pairs, ZERO, c.pairs.shape[0], -1)
    log_z = by_scaling(c, at, n, own, m.shift, sums, labels, width)
    if isnan(log_z):
        score_tokens(data, sentence, m, c.psi, at)
        score_edges(data, sentence, m, e, c, at)
        forbid(data, sentence, c.psi, at, m.layout)
        log_z = by_logarithms(c, at, n, own, sums, labels, width)
    scale(c.pairs, ZERO, c.pairs.shape[0], -1)
    if sums != Sums.LOG_Z:
        _copy(c.beta, c.held, at * width, (at + n) * width)
    if sums == Sums.PAIRS and c.rich:
        _copy(c.matrices, c.held_matrices, (at + 1) * labels * width, (at + n) * labels * width)
    return log_z


@inner
def sequence_loss(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any) -> float:
    """Return -log p(gold | sentence), times the weight of the sentence."""
    return float(weight_of(data, sentence)) * _loss(data, sentence, m, e, c, at, Sums.LOG_Z)


@kernel
def sequence_posterior(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any) -> float:
    """Return -log p(gold | sentence); write the marginals to `beta` and add expected transitions to `pairs`.

    With rich edges, `matrices` holds the probabilities of the transitions into each token. Everything is multiplied by
    the weight of the sentence. If the sentence is not complete, the sums over the allowed labellings are subtracted.
    """
    sums = Sums.PAIRS if m.layout.edges or c.rich else Sums.MARGINALS
    weight = float(weight_of(data, sentence))
    n, labels, width = data.offsets[sentence + 1] - data.offsets[sentence], m.layout.labels, m.layout.width
    if weight != 1.0:  # what other sentences have added
        scale(c.pairs, ZERO, c.pairs.shape[0], 1.0 / weight)
    loss = _loss(data, sentence, m, e, c, at, sums)
    if not is_complete(data, sentence):
        _subtract(c.beta, c.held, at * width, (at + n) * width)
        if c.rich:
            _subtract(c.matrices, c.held_matrices, (at + 1) * labels * width, (at + n) * labels * width)
    if weight != 1.0:
        scale(c.pairs, ZERO, c.pairs.shape[0], weight)
        scale(c.beta, at * width, (at + n) * width, weight)
        if c.rich:
            scale(c.matrices, (at + 1) * labels * width, (at + n) * labels * width, weight)
    return weight * loss


@inner
def sequence_direction(data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, at: Any) -> float:
    """Return -log p(gold | sentence); write gold - marginals to `beta` and, with rich edges, to `matrices`.

    Adds the expected transitions to `pairs`, which can accumulate several sentences: see `subtract_gold_pairs`.
    """
    loss = sequence_posterior(data, sentence, m, e, c, at)
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    width, weight = m.layout.width, c.beta.dtype.type(weight_of(data, sentence))
    complete = is_complete(data, sentence)
    for t in range(n):
        row = (at + t) * width
        scale(c.beta, row, row + width, -1)
        if data.trees.present:
            add_gold(data, begin + t, c.beta, row, weight)
        elif complete:
            c.beta[row + data.gold[begin + t]] += weight
    if c.rich:
        size = m.layout.labels * width
        for t in range(1, n):
            first = (at + t) * size
            scale(c.matrices, first, first + size, -1)
            if complete:
                c.matrices[first + data.gold[begin + t - 1] * width + data.gold[begin + t]] += weight
    return loss


@inlined
def scale(x: Floats, first: Any, last: Any, factor: Any) -> None:
    """x[first:last] *= factor."""
    factor_v = v.splat(x.dtype.type(factor))
    for k in range(first, last, v.LANES):
        v.store(x, k, v.multiply(v.load(x, k), factor_v))


@inlined
def _copy(x: Floats, y: Floats, first: Any, last: Any) -> None:
    """y[first:last] = x[first:last]."""
    for k in range(first, last, v.LANES):
        v.store(y, k, v.load(x, k))


@inlined
def _subtract(x: Floats, y: Floats, first: Any, last: Any) -> None:
    """x[first:last] -= y[first:last]."""
    for k in range(first, last, v.LANES):
        v.store(x, k, v.subtract(v.load(x, k), v.load(y, k)))


@inner
def subtract_gold_pairs(data: Sequences, s: Sample, pairs: Floats, width: int) -> None:
    """Convert the expected transitions of a sample to its direction: gold counts - expected."""
    scale(pairs, ZERO, pairs.shape[0], -1)
    for i in range(s.first, s.last):
        sentence = s.order[i]
        weight = pairs.dtype.type(weight_of(data, sentence))
        if is_complete(data, sentence):
            for token in range(data.offsets[sentence] + 1, data.offsets[sentence + 1]):
                pairs[data.gold[token - 1] * width + data.gold[token]] += weight


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
