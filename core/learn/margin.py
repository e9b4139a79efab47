"""Updates from one direction a sample: the kernels that perceptron, PA, MIRA, DCA, CW and AROW share.

A sample (or batch) is decoded, or its marginals are taken; the direction is phi(gold) - phi(decoded) or phi(gold) -
E[phi]. It is added up by row, so that a feature which occurs twice in a sentence counts once in its norm:

    d = sum of directions,   loss = (score(decoded) + cost) - score(gold), or -log p(gold)

and then w moves along d by the rule's step. Averages by two vectors: w_n moves by s d at update n, and
a by (n - 1) s d, so that the mean of w_1 .. w_N is w_N - a / N: no update touches a row outside the sample.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import inlined, kernel
from core.learn.evaluation import Model, score_tokens, sequence_posterior, transpose
from core.learn.problem import Sequences
from core.learn.rows import PLAIN, Rows, load_edges, subtract_gold, value_of

PERCEPTRON, PASSIVE, PASSIVE_SMOOTH, ASCENT, ASCENT_MARGIN, CONFIDENCE, REGULARIZED = 0, 1, 2, 3, 4, 5, 6


class Direction(NamedTuple):
    """The sum of a batch's directions, by row."""

    stamps: NDArray[np.int64]  # (rows,) number of the update that met the row last
    places: NDArray[np.int64]  # (rows,) where its sum stands
    unique: NDArray[np.int64]  # rows met in this update
    sums: Floats  # (unique * width,)


class Rule(NamedTuple):
    """What an update does."""

    kind: int
    limit: float  # C of PA and MIRA, 1 / l2 of DCA, r of AROW, phi of CW
    averaged: bool
    costs: Floats  # (labels,) cost of missing a gold label; empty when decoding is without cost


@inlined
def _place(d: Direction, row: Any, number: int, count: int, width: int) -> int:
    """Where the sum of a row stands; a row met for the first time gets a new, empty place."""
    if d.stamps[row] != number:
        d.stamps[row] = number
        d.places[row] = count
        d.unique[count] = row
        for j in range(0, width, v.LANES):
            v.store(d.sums, count * width + j, v.zero(d.sums))
        count += 1
    return count


@kernel
def _add_tokens(
    data: Sequences, sentence: int, at: int, decoded: NDArray[np.int32], number: int, count: int, d: Direction,
    steps: Floats, width: int,
) -> int:  # fmt: skip
    """Add the directions of a sentence's tokens; tokens decoded right have none (decoded -1: all count)."""
    for token in range(data.offsets[sentence], data.offsets[sentence + 1]):
        here = at + token - data.offsets[sentence]
        if decoded[here] == data.gold[token]:
            continue
        for k in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[k])
            count = _place(d, row, number, count, width)
            place = d.places[row] * width
            value = v.splat(d.sums.dtype.type(value_of(data, k)))
            for j in range(0, width, v.LANES):
                v.store(
                    d.sums,
                    place + j,
                    v.fma(value, v.load(steps, here * width + j), v.load(d.sums, place + j)),
                )
    return count


@kernel
def _add_pairs(
    attributes: int, labels: int, number: int, count: int, d: Direction, pairs: Floats, width: int
) -> int:
    for y in range(labels):
        count = _place(d, attributes + y, number, count, width)
        place = d.places[attributes + y] * width
        for j in range(0, width, v.LANES):
            v.store(d.sums, place + j, v.load(pairs, y * width + j))
    return count


@kernel
def _mask_and_norm(d: Direction, count: int, r: Rows, width: int) -> float:
    """Drop what has no weight; returns |d|^2."""
    norm = 0.0
    for i in range(count):
        row = d.unique[i]
        acc = v.zero(d.sums)
        for j in range(0, width, v.LANES):
            x = v.load(d.sums, i * width + j)
            if r.mask.shape[0] > 0:
                x = v.chosen(r.mask[(row * width + j) // v.LANES], x, v.zero(d.sums))
                v.store(d.sums, i * width + j, x)
            acc = v.fma(x, x, acc)
        norm += float(v.total(acc))
    return norm


@kernel
def _decoded_direction(
    data: Sequences, sentence: int, m: Model, rule: Rule, edges: bool, e: Edges, c: Chain, at: int,
    decoded: NDArray[np.int32],
) -> float:  # fmt: skip
    """Decode (with costs), leaving gold - decoded in `beta` and added to `pairs`; returns the margin violation."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    score_tokens(data, sentence, m, c.psi, 0)
    gold = ch.gold_score(c.psi, 0, data.gold, begin, n, e, m.width)
    if rule.costs.shape[0] > 0:
        for t in range(n):
            y = data.gold[begin + t]
            cost = rule.costs[y]
            for j in range(m.labels):
                if j != y:
                    c.psi[t * m.width + j] += cost
    top = ch.viterbi(c.psi, n, e.scores, e.backward, m.labels, m.width, decoded, at)
    for t in range(n):
        row = (at + t) * m.width
        for j in range(0, m.width, v.LANES):
            v.store(c.beta, row + j, v.zero(c.beta))
        y, found = data.gold[begin + t], decoded[at + t]
        if found != y:
            c.beta[row + y] += 1
            c.beta[row + found] -= 1
        if edges and t > 0:
            c.pairs[data.gold[begin + t - 1] * m.width + y] += 1
            c.pairs[decoded[at + t - 1] * m.width + found] -= 1
    return max(top - gold, 0.0)


@kernel
def _step(rule: Rule, loss: float, norm: float) -> float:
    """How far to go along the direction."""
    if rule.kind == PERCEPTRON:
        return 1.0
    if rule.kind == PASSIVE_SMOOTH:
        return loss / (norm + 0.5 / rule.limit)
    return min(rule.limit, loss / norm)


@kernel
def _move(
    d: Direction, count: int, step: float, updates: float, averaged: bool, r: Rows, a: Floats, width: int
) -> None:
    """w += step d, and the average's vector along."""
    kind = r.weights.dtype.type
    step_v, past = v.splat(kind(step)), v.splat(kind(step * updates))
    for i in range(count):
        row = d.unique[i]
        for j in range(0, width, v.LANES):
            x, k = v.load(d.sums, i * width + j), row * width + j
            v.store(r.weights, k, v.fma(step_v, x, v.load(r.weights, k)))
            if averaged:
                v.store(a, k, v.fma(past, x, v.load(a, k)))


@kernel
def _confidence_step(
    d: Direction, count: int, rule: Rule, loss: float, r: Rows, variance: Floats, width: int
) -> float:
    """alpha of AROW (Crammer et al. 2009), or of CW with a diagonal in closed form (Dredze et al. 2008)."""
    spread, margin = 0.0, 0.0
    for i in range(count):
        row = d.unique[i] * width
        for j in range(width):
            x = float(d.sums[i * width + j])
            if x != 0.0:
                spread += x * x * float(variance[row + j])
                margin += x * float(r.weights[row + j])
    if rule.kind == REGULARIZED:
        return loss / (rule.limit + spread)
    phi = rule.limit
    b = 1.0 + 2.0 * phi * margin
    inside = b * b - 8.0 * phi * (margin - phi * spread)
    return max((-b + sqrt(max(inside, 0.0))) / (4.0 * phi * spread), 0.0)


@kernel
def _move_by_variance(
    d: Direction, count: int, rule: Rule, alpha: float, r: Rows, variance: Floats, width: int
) -> None:
    """w += alpha V d;  1/V += d^2 / r (AROW) or 2 alpha phi d^2 (CW)."""
    gain = 1.0 / rule.limit if rule.kind == REGULARIZED else 2.0 * alpha * rule.limit
    for i in range(count):
        row = d.unique[i] * width
        for j in range(width):
            x = float(d.sums[i * width + j])
            if x != 0.0:
                here = float(variance[row + j])
                r.weights[row + j] += alpha * here * x
                variance[row + j] = 1.0 / (1.0 / here + gain * x * x)


class Scene(NamedTuple):
    """What stays the same over a pass, and scratch."""

    rule: Rule
    attributes: int
    labels: int
    width: int
    edges: bool
    e: Edges
    c: Chain
    decoded: NDArray[np.int32]  # labels found, of the batch's tokens
    d: Direction


@kernel
def _sample_direction(
    data: Sequences, sentence: int, m: Model, number: int, count: int, at: int, s: Scene
) -> tuple[int, float]:
    """Add one sentence's direction, its tokens' to `d` and its transitions' to `pairs`; (rows met so far, loss)."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    if s.rule.kind == ASCENT:
        # `pairs` collects expected transitions; what it holds is turned into gold - expected by negating it here.
        for k in range(s.labels * s.width):
            s.c.pairs[k] = -s.c.pairs[k]
        loss = sequence_posterior(data, sentence, m, s.edges, s.e, s.c, at)
        for k in range(s.labels * s.width):
            s.c.pairs[k] = -s.c.pairs[k]
        subtract_gold(s.c, at, data.gold, begin, n, s.width)
        for t in range(n):
            s.decoded[at + t] = -1
            if s.edges and t > 0:
                s.c.pairs[data.gold[begin + t - 1] * s.width + data.gold[begin + t]] += 1
    else:
        loss = _decoded_direction(data, sentence, m, s.rule, s.edges, s.e, s.c, at, s.decoded)
    return _add_tokens(data, sentence, at, s.decoded, number, count, s.d, s.c.beta, s.width), loss


@kernel
def _take(s: Scene, count: int, loss: float, number: int, r: Rows, second: Floats) -> None:
    """Move the weights along the direction, by the rule."""
    norm = _mask_and_norm(s.d, count, r, s.width)
    if norm == 0.0 or (loss == 0.0 and s.rule.kind != PERCEPTRON):
        return
    if s.rule.kind >= CONFIDENCE:
        alpha = _confidence_step(s.d, count, s.rule, loss, r, second, s.width)
        _move_by_variance(s.d, count, s.rule, alpha, r, second, s.width)
    else:
        _move(s.d, count, _step(s.rule, loss, norm), number - 1.0, s.rule.averaged, r, second, s.width)


@kernel
def run_margin(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, batch: int, r: Rows, second: Floats,
    updates: NDArray[np.int64], s: Scene,
) -> float:  # fmt: skip
    """Updates `first` to `last` of a pass; returns the loss met. `second` holds averages or variances, or nothing."""
    total = 0.0
    denormals = v.flush_denormals()
    for b in range(first, last, batch):
        shift = load_edges(r, s.attributes, s.labels, PLAIN, s.width, s.e)
        if s.rule.kind != ASCENT:
            transpose(s.e.scores, s.labels, s.width, s.e.backward)
        m = Model(r, PLAIN, shift, s.labels, s.width)
        number, count, at, loss, paired = updates[0] + 1, 0, 0, 0.0, False
        s.c.pairs[:] = 0
        for i in range(b, min(b + batch, last)):
            n = data.offsets[order[i] + 1] - data.offsets[order[i]]
            if n > 0:
                count, part = _sample_direction(data, order[i], m, number, count, at, s)
                loss += part
                paired |= s.edges and n > 1
                at += n
        if paired:
            count = _add_pairs(s.attributes, s.labels, number, count, s.d, s.c.pairs, s.width)
        _take(s, count, loss, number, r, second)
        updates[0] = number
        total += loss
    v.restore_denormals(denormals)
    return total
