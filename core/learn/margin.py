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
from core.jit import ZERO, inlined, inner, kernel
from core.learn.evaluation import Model, score_edges, score_tokens, sequence_posterior
from core.learn.problem import Problem, Sequences
from core.learn.rows import PLAIN, Rows, edge_row, load_edges, read_edges, subtract_gold, value_of

PERCEPTRON, PASSIVE, PASSIVE_SMOOTH, ASCENT, ASCENT_MARGIN, CONFIDENCE, REGULARIZED = 0, 1, 2, 3, 4, 5, 6


class Direction(NamedTuple):
    """The sum of a batch's directions, by row: a sparse set of `count` rows, in the order they were met."""

    places: NDArray[
        np.int32
    ]  # (rows,) where a row's sum stands, if it was met: then unique[places[row]] == row
    unique: NDArray[np.int64]  # (count,) rows met in this update
    sums: Floats  # (count * width,)


def direction(problem: Problem, batch: int, dtype: Any) -> Direction:
    """Room for the direction of any batch of so many sentences."""
    cells = np.sort(problem.cells())[::-1]
    most = int(cells[:batch].sum()) + len(problem.labels)
    return Direction(
        np.zeros(problem.rows, np.int32), np.zeros(most, np.int64), v.zeros(most * problem.width, dtype)
    )


class Rule(NamedTuple):
    """What an update does."""

    kind: int
    limit: float  # C of PA and MIRA, 1 / l2 of DCA, r of AROW, phi of CW
    averaged: bool
    costs: Floats  # (labels,) cost of missing a gold label; empty when there is none
    augmented: bool = True  # whether decoding looks for what costs most, or costs count once it has decoded


@inlined
def _place(d: Direction, row: Any, count: int, width: int) -> int:
    """Give a row a place, empty at first, if it has none; returns how many rows then have one."""
    place = d.places[row]
    if place < count and d.unique[place] == row:
        return count
    d.places[row] = count
    d.unique[count] = row
    for j in range(0, width, v.LANES):
        v.store(d.sums, count * width + j, v.zero(d.sums))
    return count + 1


@inlined
def _add_one(d: Direction, row: Any, label: Any, one: int, count: int, width: int) -> int:
    """Add one to the sum of a row at a label, or take it away; returns how many rows then have a place."""
    count = _place(d, row, count, width)
    d.sums[np.int64(d.places[row]) * width + label] += d.sums.dtype.type(one)
    return count


@inner
def add_wrong(
    data: Sequences, sentence: int, decoded: NDArray[np.int32], count: int, d: Direction, second: Floats,
    attributes: int, labels: int, edges: bool, width: int,
) -> int:  # fmt: skip
    """Add phi(gold) - phi(decoded) of a sentence: two labels at each token that is wrong, and its transitions."""
    kind = d.sums.dtype.type
    begin = data.offsets[sentence]
    for token in range(begin, data.offsets[sentence + 1]):
        y, found = data.gold[token], decoded[token - begin]
        if found != y:
            for k in range(data.starts[token], data.starts[token + 1]):
                row, value = np.int64(data.rows[k]), kind(value_of(data, k))
                v.prefetch(second, row * width)
                v.prefetch(second, row * width + width - 1)
                count = _place(d, row, count, width)
                place = np.int64(d.places[row]) * width
                d.sums[place + y] += value
                d.sums[place + found] -= value
        if token > begin:
            y_before, found_before = data.gold[token - 1], decoded[token - 1 - begin]
            if found != y or found_before != y_before:
                if edges:
                    count = _add_one(d, attributes + y_before, y, 1, count, width)
                    count = _add_one(d, attributes + found_before, found, -1, count, width)
                if data.edge_starts.shape[0] > 0:
                    for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                        row = edge_row(data, k, attributes + labels, labels)
                        count = _add_one(d, row + y_before, y, 1, count, width)
                        count = _add_one(d, row + found_before, found, -1, count, width)
    return count


@inlined
def _add_to_place(d: Direction, row: Any, value: Any, steps: Floats, at: Any, width: int) -> None:
    """sum of the row += value * step."""
    place, value_v = np.int64(d.places[row]) * width, v.splat(d.sums.dtype.type(value))
    for j in range(0, width, v.LANES):
        v.store(d.sums, place + j, v.fma(value_v, v.load(steps, at + j), v.load(d.sums, place + j)))


@inner
def add_expected(
    data: Sequences, sentence: int, count: int, d: Direction, c: Chain, attributes: int, labels: int, edges: bool,
    width: int,
) -> int:  # fmt: skip
    """Add phi(gold) - E[phi] of a sentence, from gold - marginals in `beta` and expected transitions in `pairs`.

    Of edge attributes gold - expected is in `matrices`.
    """
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        for k in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[k])
            count = _place(d, row, count, width)
            _add_to_place(d, row, value_of(data, k), c.beta, (token - begin) * width, width)
        if c.matrices.shape[0] > 0 and token > begin:
            for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                for y in range(labels):
                    row = edge_row(data, k, attributes + labels, labels) + y
                    count = _place(d, row, count, width)
                    _add_to_place(d, row, 1, c.matrices, ((token - begin) * labels + y) * width, width)
    if edges and end - begin > 1:
        for y in range(labels):
            count = _place(d, attributes + y, count, width)
            _add_to_place(d, attributes + y, -1, c.pairs, y * width, width)
        for token in range(begin + 1, end):
            place = np.int64(d.places[attributes + data.gold[token - 1]]) * width
            d.sums[place + data.gold[token]] += d.sums.dtype.type(1)
    return count


@inner
def _mask_and_norm(d: Direction, count: int, r: Rows, width: int) -> float:
    """Drop what has no weight; returns |d|^2."""
    acc = v.zero(d.sums)
    for i in range(count):
        row = d.unique[i]
        for j in range(0, width, v.LANES):
            x = v.load(d.sums, i * width + j)
            if r.mask.shape[0] > 0:
                x = v.kept(r.mask[(row * width + j) // v.LANES], x)
                v.store(d.sums, i * width + j, x)
            acc = v.fma(x, x, acc)
    return float(v.total(acc))


@kernel
def violation(
    data: Sequences, sentence: int, m: Model, rule: Rule, e: Edges, c: Chain, decoded: NDArray[np.int32]
) -> float:
    """Decode, with costs if the rule has any and says so; returns by how much the margin is violated."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    score_tokens(data, sentence, m, c.psi, ZERO)
    own = score_edges(data, sentence, m, e, c, ZERO)
    gold = ch.gold_score(c.psi, ZERO, data.gold, begin, n, own, m.width)
    costly = rule.costs.shape[0] > 0
    if costly and rule.augmented:
        for t in range(n):
            row, y = t * m.width, data.gold[begin + t]
            right, cost = c.psi[row + y], v.splat(rule.costs[y])
            for j in range(row, row + m.width, v.LANES):
                v.store(c.psi, j, v.add(v.load(c.psi, j), cost))
            c.psi[row + y] = right
    loss = max(ch.viterbi(c.psi, n, own.scores, own.step, m.labels, m.width, decoded, ZERO) - gold, 0.0)
    if costly and not rule.augmented:
        for t in range(n):
            y = data.gold[begin + t]
            if decoded[t] != y:
                loss += rule.costs[y]
    return loss


@kernel
def _step(rule: Rule, loss: float, norm: float) -> float:
    """How far to go along the direction."""
    if rule.kind == PERCEPTRON:
        return 1.0
    if rule.kind == PASSIVE_SMOOTH:
        return loss / (norm + 0.5 / rule.limit)
    return min(rule.limit, loss / norm)


@inner
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


@inner
def _confidence_step(
    d: Direction, count: int, rule: Rule, loss: float, r: Rows, variance: Floats, width: int
) -> float:
    """alpha of AROW (Crammer et al. 2009), or of CW with a diagonal in closed form (Dredze et al. 2008)."""
    spreads, margins = v.zero(variance), v.zero(variance)
    for i in range(count):
        for j in range(0, width, v.LANES):
            x, k = v.load(d.sums, i * width + j), d.unique[i] * width + j
            spreads = v.fma(v.multiply(x, x), v.load(variance, k), spreads)
            margins = v.fma(x, v.load(r.weights, k), margins)
    spread, margin = float(v.total(spreads)), float(v.total(margins))
    if rule.kind == REGULARIZED:
        return loss / (rule.limit + spread)
    phi = rule.limit
    b = 1.0 + 2.0 * phi * margin
    inside = b * b - 8.0 * phi * (margin - phi * spread)
    return max((-b + sqrt(max(inside, 0.0))) / (4.0 * phi * spread), 0.0)


@inner
def _move_by_variance(
    d: Direction, count: int, rule: Rule, alpha: float, r: Rows, variance: Floats, width: int
) -> None:
    """w += alpha V d;  1/V += d^2 / r (AROW) or 2 alpha phi d^2 (CW), that is V /= 1 + V d^2 / r and so on."""
    kind = variance.dtype.type
    gain = v.splat(kind(1.0 / rule.limit if rule.kind == REGULARIZED else 2.0 * alpha * rule.limit))
    alpha_v, one = v.splat(kind(alpha)), v.splat(kind(1))
    for i in range(count):
        for j in range(0, width, v.LANES):
            x, k = v.load(d.sums, i * width + j), d.unique[i] * width + j
            here = v.load(variance, k)
            moved = v.multiply(here, x)
            v.store(r.weights, k, v.fma(alpha_v, moved, v.load(r.weights, k)))
            v.store(variance, k, v.divide(here, v.fma(v.multiply(gain, moved), x, one)))


class Scene(NamedTuple):
    """What stays the same over a pass, and scratch."""

    rule: Rule
    attributes: int
    labels: int
    width: int
    edges: bool
    e: Edges
    c: Chain
    decoded: NDArray[np.int32]  # labels found in a sentence
    d: Direction


@inner
def _sample_direction(
    data: Sequences, sentence: int, m: Model, count: int, s: Scene, second: Floats
) -> tuple[int, float]:
    """Add one sentence's direction; (rows met so far, loss)."""
    if s.rule.kind != ASCENT:
        loss = violation(data, sentence, m, s.rule, s.e, s.c, s.decoded)
        count = add_wrong(
            data, sentence, s.decoded, count, s.d, second, s.attributes, s.labels, s.edges, s.width
        )
        return count, loss
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    s.c.pairs[:] = 0
    loss = sequence_posterior(data, sentence, m, s.edges, s.e, s.c, ZERO)
    subtract_gold(s.c, ZERO, data.gold, begin, n, s.width)
    return add_expected(data, sentence, count, s.d, s.c, s.attributes, s.labels, s.edges, s.width), loss


@kernel
def _take(s: Scene, count: int, loss: float, number: int, r: Rows, second: Floats) -> bool:
    """Move the weights along the direction, by the rule; returns whether they moved."""
    norm = _mask_and_norm(s.d, count, r, s.width)
    if norm == 0.0 or (loss == 0.0 and s.rule.kind != PERCEPTRON):
        return False
    if s.rule.kind >= CONFIDENCE:
        alpha = _confidence_step(s.d, count, s.rule, loss, r, second, s.width)
        _move_by_variance(s.d, count, s.rule, alpha, r, second, s.width)
    else:
        _move(s.d, count, _step(s.rule, loss, norm), number - 1.0, s.rule.averaged, r, second, s.width)
    return True


@inner
def _load_transitions(r: Rows, s: Scene) -> float:
    """Transitions as the rule needs them: exponentials for marginals, else scores for Viterbi."""
    if s.rule.kind == ASCENT:
        return load_edges(r, s.attributes, s.labels, PLAIN, s.width, s.e)
    read_edges(r, s.attributes, s.labels, PLAIN, s.width, s.e)
    return 0.0


@kernel
def run_margin(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, batch: int, r: Rows, second: Floats,
    updates: NDArray[np.int64], s: Scene,
) -> float:  # fmt: skip
    """Updates `first` to `last` of a pass; returns the loss met. `second` holds averages or variances, or nothing."""
    total, shift, moved = 0.0, 0.0, True
    denormals = v.flush_denormals()
    for b in range(first, last, batch):
        if moved:
            shift = _load_transitions(r, s)
        m = Model(r, PLAIN, shift, s.attributes + s.labels, s.labels, s.width)
        count, loss = ZERO, 0.0
        for i in range(b, min(b + batch, last)):
            if data.offsets[order[i] + 1] > data.offsets[order[i]]:
                count, part = _sample_direction(data, order[i], m, count, s, second)
                loss += part
        updates[0] += 1
        moved = _take(s, count, loss, updates[0], r, second)
        total += loss
    v.restore_denormals(denormals)
    return total
