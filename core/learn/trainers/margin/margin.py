"""Updates along one direction per sample: the kernels that perceptron, PA, MIRA, DCA, CW and AROW share.

For each sample (or batch), the kernel decodes the labels or computes the marginals. The direction is
phi(gold) - phi(decoded) or phi(gold) - E[phi]. It is summed per row, so that a feature that occurs twice in a sentence
counts once in the norm:

    d = sum of directions,   loss = (score(decoded) + cost) - score(gold), or -log p(gold)

Then w moves along d by the step of the rule. Averaging uses two vectors: at update n, w moves by s d and a moves by
(n - 1) s d. The mean of w_1 .. w_N is then w_N - a / N, and no update touches a row outside the sample.
"""

from enum import IntEnum
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, keep_apart, kernel
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tagsmith.core.learn.weights.posterior import (
    Sample,
    forbid,
    is_allowed,
    is_complete,
    score_edges,
    score_tokens,
    sequence_direction,
    subtract_gold_pairs,
    weight_of,
)
from tagsmith.core.learn.weights.rows import PLAIN, Rows, Scorer, edge_row, load_edges, read_edges, value_of
from tagsmith.core.learn.weights.trees import is_right, lanes_of, tree_violation


class Margin(IntEnum):
    """The step size and direction of an update."""

    PERCEPTRON = 0  # step 1
    PASSIVE = 1  # min(C, loss / |d|^2): PA-I, MIRA
    PASSIVE_SMOOTH = 2  # loss / (|d|^2 + 1 / 2C): PA-II
    ASCENT = 3  # min(1 / l2, loss / |d|^2) with the loss of a CRF: DCA
    ASCENT_MARGIN = 4  # the same with the loss of an SVM
    CONFIDENCE = 5  # along V d: CW
    REGULARIZED = 6  # along V d: AROW


@inlined
def uses_variance(margin: int) -> bool:
    """Whether the rule uses a variance per weight."""
    return margin in (Margin.CONFIDENCE, Margin.REGULARIZED)


@inlined
def uses_marginals(margin: int) -> bool:
    """Whether the direction is gold - expected instead of gold - decoded."""
    return margin == Margin.ASCENT


class Direction(NamedTuple):
    """The sum of the directions of a batch: a sparse set of `count` rows, in order of first use."""

    places: NDArray[np.int32]  # (rows,) the slot of each row; valid if unique[places[row]] == row
    unique: NDArray[np.int64]  # (count,) the rows in this update
    sums: Floats  # (count * width,)


def direction(problem: Problem, batch: int, dtype: Any) -> Direction:
    """Allocate the direction for any batch of `batch` sentences."""
    cells = np.sort(problem.cells())[::-1]
    most = int(cells[:batch].sum()) + len(problem.labels)
    return Direction(
        np.zeros(problem.rows, np.int32), np.zeros(most, np.int64), v.zeros(most * problem.width, dtype)
    )


class Total(IntEnum):
    """How the costs of the wrong labels of a predicted sequence enter its loss."""

    SUM = 0
    ROOT = 1  # the square root of the sum
    ONE = 2  # 1, however many are wrong


class Rule(NamedTuple):
    """The parameters of an update rule."""

    margin: int  # a `Margin` value
    limit: float  # C of PA and MIRA, 1 / l2 of DCA, r of AROW, phi of CW
    averaged: bool
    costs: Floats  # (labels,) cost of missing a gold label; empty unless `costly`
    costly: bool
    augmented: bool  # whether decoding maximises the loss; otherwise costs are added after decoding
    total: int  # a `Total` value, for costs that are added after decoding


def rule_of(
    margin: Margin,
    limit: float,
    costs: Floats,
    *,
    averaged: bool = False,
    augmented: bool = True,
    total: Total = Total.SUM,
) -> Rule:
    """Create a rule; `costs` may be empty."""
    return Rule(int(margin), limit, averaged, costs, len(costs) > 0, augmented, int(total))


@inlined
def _place(d: Direction, row: Any, count: int, width: int) -> int:
    """Ensure `row` has a zeroed slot; return the number of slots in use."""
    place = d.places[row]
    if place < count and d.unique[place] == row:
        return count
    d.places[row] = count
    d.unique[count] = row
    for j in range(0, width, v.LANES):
        v.store(d.sums, count * width + j, v.zero(d.sums))
    return count + 1


@inlined
def _add_one(d: Direction, row: Any, label: Any, one: Any, count: int, width: int) -> int:
    """Add `one` to the sum of a row at a label; return the number of slots in use."""
    count = _place(d, row, count, width)
    d.sums[np.int64(d.places[row]) * width + label] += one
    return count


class Labellings(NamedTuple):
    """Two labellings of a sentence, each (longest,)."""

    gold: NDArray[np.int32]  # the gold labels; if some tokens have none, the best labels that are allowed
    decoded: NDArray[np.int32]


def labellings(longest: int) -> Labellings:
    """Allocate room for sentences of up to `longest` tokens."""
    return Labellings(np.zeros(longest, np.int32), np.zeros(longest, np.int32))


@inner
def add_wrong(
    data: Sequences, sentence: int, y: Labellings, count: int, d: Direction, second: Floats, layout: Layout
) -> int:
    """Add phi(gold) - phi(decoded) of a sentence, times its weight: two labels at each wrong token, and transitions."""
    kind, attributes, width = d.sums.dtype.type, layout.attributes, layout.width
    begin, one = data.offsets[sentence], d.sums.dtype.type(weight_of(data, sentence))
    if data.trees.present:
        return _add_wrong_arcs(data, sentence, y.decoded, count, d, layout)
    for token in range(begin, data.offsets[sentence + 1]):
        t = token - begin
        gold, found = y.gold[t], y.decoded[t]
        if found != gold:
            for k in range(data.starts[token], data.starts[token + 1]):
                row, value = np.int64(data.rows[k]), one * kind(value_of(data, k))
                v.prefetch(second, row * width)
                v.prefetch(second, row * width + width - 1)
                count = _place(d, row, count, width)
                place = np.int64(d.places[row]) * width
                d.sums[place + gold] += value
                d.sums[place + found] -= value
        if token > begin:
            gold_before, found_before = y.gold[t - 1], y.decoded[t - 1]
            if found != gold or found_before != gold_before:
                if layout.edges:
                    count = _add_one(d, attributes + gold_before, gold, one, count, width)
                    count = _add_one(d, attributes + found_before, found, -one, count, width)
                if data.rich:
                    for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                        row = edge_row(data, k, layout)
                        count = _add_one(d, row + gold_before, gold, one, count, width)
                        count = _add_one(d, row + found_before, found, -one, count, width)
    return count


@inner
def _add_wrong_arcs(
    data: Sequences, sentence: int, found: NDArray[np.int32], count: int, d: Direction, layout: Layout
) -> int:
    """Add phi(gold) - phi(found) of a tree, times its weight; `found` has the codes of `tree_violation`."""
    keep_apart()
    kind, width = d.sums.dtype.type, layout.width
    begin, one = data.offsets[sentence], d.sums.dtype.type(weight_of(data, sentence))
    for token in range(begin, data.offsets[sentence + 1]):
        gold, code = data.gold[token], found[token - begin]
        if is_right(data, token, code):
            continue
        # 1 for a missing arc, -1 for a wrong one, 0 if only the relation of the arc is wrong.
        arc = (1 if gold >= 0 else 0) - (code & 1)
        relation = code >> 1 if gold > 0 else gold
        for k in range(data.starts[token], data.starts[token + 1]):
            row, value = np.int64(data.rows[k]), one * kind(value_of(data, k))
            count = _place(d, row, count, width)
            place = np.int64(d.places[row]) * width
            d.sums[place] += kind(arc) * value
            if relation != gold:
                d.sums[place + gold] += value
                d.sums[place + relation] -= value
    return count


@inlined
def _add_to_place(d: Direction, row: Any, value: Any, steps: Floats, at: Any, width: int, lanes: Any) -> None:
    """Sum of the row, up to `lanes`, += value * step."""
    place, value_v = np.int64(d.places[row]) * width, v.splat(d.sums.dtype.type(value))
    for j in range(0, lanes, v.LANES):
        v.store(d.sums, place + j, v.fma(value_v, v.load(steps, at + j), v.load(d.sums, place + j)))


@inner
def add_expected(data: Sequences, sentence: int, count: int, d: Direction, c: Chain, layout: Layout) -> int:
    """Add phi(gold) - E[phi] of a sentence, from gold - expected in `beta`, `pairs` and `matrices`."""
    attributes, labels, width = layout.attributes, layout.labels, layout.width
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        lanes = lanes_of(data, token, layout) if data.trees.present else width
        for k in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[k])
            count = _place(d, row, count, width)
            _add_to_place(d, row, value_of(data, k), c.beta, (token - begin) * width, width, lanes)
        if c.rich and token > begin:
            for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
                for y in range(labels):
                    row = edge_row(data, k, layout) + y
                    count = _place(d, row, count, width)
                    _add_to_place(d, row, 1, c.matrices, ((token - begin) * labels + y) * width, width, width)
    if layout.edges and end - begin > 1:
        for y in range(labels):
            count = _place(d, attributes + y, count, width)
            _add_to_place(d, attributes + y, 1, c.pairs, y * width, width, width)
    return count


@inner
def _mask_and_norm(d: Direction, count: int, r: Rows, width: int) -> float:
    """Zero the direction where no weight exists; return |d|^2."""
    acc = v.zero(d.sums)
    for i in range(count):
        row = d.unique[i]
        for j in range(0, width, v.LANES):
            x = v.load(d.sums, i * width + j)
            if r.masked:
                x = v.kept(r.mask[(row * width + j) // v.LANES], x)
                v.store(d.sums, i * width + j, x)
            acc = v.fma(x, x, acc)
    return float(v.total(acc))


@inner
def _find_gold(
    data: Sequences, sentence: int, m: Scorer, e: Edges, c: Chain, gold: NDArray[np.int32]
) -> float:
    """Write the gold labels, or the best labels that are allowed; return their score. The scores are in the chain."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    labels, width = m.layout.labels, m.layout.width
    own = score_edges(data, sentence, m, e, c, ZERO)
    if is_complete(data, sentence):
        for t in range(n):
            gold[t] = data.gold[begin + t]
        return ch.gold_score(c.psi, ZERO, gold, ZERO, n, own, width)
    forbid(data, sentence, c.psi, ZERO, m.layout)
    score = ch.viterbi(c.psi, n, own.scores, own.step, labels, width, gold, ZERO)
    score_tokens(data, sentence, m, c.psi, ZERO)
    return score


@inlined
def _add_costs(
    data: Sequences, sentence: int, rule: Rule, c: Chain, gold: NDArray[np.int32], layout: Layout
) -> None:
    """Add the cost of missing the gold label to the scores of all wrong labels."""
    begin, n, width = (
        data.offsets[sentence],
        data.offsets[sentence + 1] - data.offsets[sentence],
        layout.width,
    )
    complete = is_complete(data, sentence)
    for t in range(n):
        row, y = t * width, gold[t]
        right, cost = c.psi[row + y], v.splat(rule.costs[y])
        if complete or data.gold[begin + t] >= 0:
            for j in range(row, row + width, v.LANES):
                v.store(c.psi, j, v.add(v.load(c.psi, j), cost))
            c.psi[row + y] = right
        else:
            for j in range(layout.labels):
                if not is_allowed(data, begin + t, j, width):
                    c.psi[row + j] += rule.costs[y]


@inlined
def _is_wrong(data: Sequences, token: Any, found: Any, gold: Any, width: int) -> Any:
    """Whether a label is not one that the token may have."""
    if data.partial and data.gold[token] < 0:
        return not is_allowed(data, token, found, width)
    return found != gold


@kernel
def violation(
    data: Sequences, sentence: int, m: Scorer, rule: Rule, e: Edges, c: Chain, y: Labellings
) -> float:
    """Decode, with costs if the rule is cost-augmented; return the size of the margin violation, times the weight."""
    begin, n = data.offsets[sentence], data.offsets[sentence + 1] - data.offsets[sentence]
    labels, width = m.layout.labels, m.layout.width
    score_tokens(data, sentence, m, c.psi, ZERO)
    if data.trees.present:
        return float(weight_of(data, sentence)) * _tree_loss(data, sentence, m.layout, rule, c, y.decoded)
    gold = _find_gold(data, sentence, m, e, c, y.gold)
    own = ch.edges_of_tokens(e, c, labels, width) if c.rich else e
    if rule.costly and rule.augmented:
        _add_costs(data, sentence, rule, c, y.gold, m.layout)
    loss = max(ch.viterbi(c.psi, n, own.scores, own.step, labels, width, y.decoded, ZERO) - gold, 0.0)
    if rule.costly and not rule.augmented:
        wrong, cost = False, 0.0
        for t in range(n):
            if _is_wrong(data, begin + t, y.decoded[t], y.gold[t], width):
                wrong = True
                if rule.total == Total.SUM:
                    loss += rule.costs[y.gold[t]]
                else:
                    cost += rule.costs[y.gold[t]]
        if rule.total == Total.ROOT:
            loss += sqrt(cost)
        elif rule.total == Total.ONE and wrong:
            loss += 1.0
    return float(weight_of(data, sentence)) * loss


@inner
def _tree_loss(
    data: Sequences, sentence: int, layout: Layout, rule: Rule, c: Chain, found: NDArray[np.int32]
) -> float:
    """Return the margin violation of the tree whose scores are in the chain; see `tree_violation`."""
    loss, cost = tree_violation(data, sentence, layout, rule.costs, rule.costly and rule.augmented, c, found)
    if rule.costly and not rule.augmented:
        if rule.total == Total.SUM:
            loss += cost
        else:
            loss += sqrt(cost) if rule.total == Total.ROOT else min(cost, 1.0)
    return loss


@kernel
def _step(rule: Rule, loss: float, norm: float) -> float:
    """Return the step size along the direction."""
    if rule.margin == Margin.PERCEPTRON:
        return 1.0
    if rule.margin == Margin.PASSIVE_SMOOTH:
        return loss / (norm + 0.5 / rule.limit)
    return min(rule.limit, loss / norm)


@inner
def _move(
    d: Direction, count: int, step: float, updates: float, averaged: bool, r: Rows, a: Floats, width: int
) -> None:
    """w += step d, and the corresponding step of the averaging vector."""
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
    if rule.margin == Margin.REGULARIZED:
        return loss / (rule.limit + spread)
    phi = rule.limit
    b = 1.0 + 2.0 * phi * margin
    inside = b * b - 8.0 * phi * (margin - phi * spread)
    return max((-b + sqrt(max(inside, 0.0))) / (4.0 * phi * spread), 0.0)


@inner
def _move_by_variance(
    d: Direction, count: int, rule: Rule, alpha: float, r: Rows, variance: Floats, width: int
) -> None:
    """w += alpha V d;  1/V += d^2 / r (AROW) or 2 alpha phi d^2 (CW), computed as V /= 1 + V d^2 / r, and so on."""
    kind = variance.dtype.type
    gain = v.splat(kind(1.0 / rule.limit if rule.margin == Margin.REGULARIZED else 2.0 * alpha * rule.limit))
    alpha_v, one = v.splat(kind(alpha)), v.splat(kind(1))
    for i in range(count):
        for j in range(0, width, v.LANES):
            x, k = v.load(d.sums, i * width + j), d.unique[i] * width + j
            here = v.load(variance, k)
            moved = v.multiply(here, x)
            v.store(r.weights, k, v.fma(alpha_v, moved, v.load(r.weights, k)))
            v.store(variance, k, v.divide(here, v.fma(v.multiply(gain, moved), x, one)))


class MarginPlan(NamedTuple):
    """Values that are constant during a pass, and scratch."""

    rule: Rule
    batch: int
    layout: Layout
    e: Edges
    c: Chain
    y: Labellings
    d: Direction


@inner
def expected_direction(data: Sequences, s: Sample, m: Scorer, e: Edges, c: Chain) -> float:
    """Write gold - expected of the single sentence of a sample to `beta`, `pairs`, `matrices`; return -log p(gold)."""
    c.pairs[:] = 0
    loss = sequence_direction(data, s.order[s.first], m, e, c, ZERO)
    subtract_gold_pairs(data, s, c.pairs, m.layout.width)
    return loss


@inlined
def _sample_direction(
    data: Sequences, s: Sample, m: Scorer, count: int, k: MarginPlan, second: Floats
) -> tuple[int, float]:
    """Add the direction of the single sentence of a sample; return (slots in use, loss)."""
    sentence = s.order[s.first]
    if uses_marginals(k.rule.margin):
        loss = expected_direction(data, s, m, k.e, k.c)
        return add_expected(data, sentence, count, k.d, k.c, k.layout), loss
    loss = violation(data, sentence, m, k.rule, k.e, k.c, k.y)
    return add_wrong(data, sentence, k.y, count, k.d, second, k.layout), loss


@inlined
def _take(k: MarginPlan, count: int, loss: float, number: int, r: Rows, second: Floats) -> bool:
    """Move the weights along the direction, according to the rule; return whether they moved."""
    width = k.layout.width
    norm = _mask_and_norm(k.d, count, r, width)
    if norm == 0.0 or (loss == 0.0 and k.rule.margin != Margin.PERCEPTRON):
        return False
    if uses_variance(k.rule.margin):
        alpha = _confidence_step(k.d, count, k.rule, loss, r, second, width)
        _move_by_variance(k.d, count, k.rule, alpha, r, second, width)
    else:
        _move(k.d, count, _step(k.rule, loss, norm), number - 1.0, k.rule.averaged, r, second, width)
    return True


@inlined
def _load_transitions(r: Rows, k: MarginPlan) -> float:
    """Load the transitions that the rule needs: exponentials for marginals, otherwise scores for Viterbi."""
    if uses_marginals(k.rule.margin):
        return load_edges(r, PLAIN, k.layout, k.e)
    read_edges(r, PLAIN, k.layout, k.e)
    return 0.0


@kernel
def run_margin(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, r: Rows, second: Floats,
    updates: NDArray[np.int64], k: MarginPlan,
) -> float:  # fmt: skip
    """Run updates `first` to `last` of a pass; return their total loss. `second`: averages or variances, if any."""
    total, shift, moved = 0.0, 0.0, True
    denormals = v.flush_denormals()
    for b in range(first, last, k.batch):
        if moved:
            shift = _load_transitions(r, k)
        m = Scorer(r, PLAIN, shift, k.layout)
        count, loss = ZERO, 0.0
        for i in range(b, min(b + k.batch, last)):
            if data.offsets[order[i] + 1] > data.offsets[order[i]]:
                count, part = _sample_direction(data, Sample(order, i, i + 1), m, count, k, second)
                loss += part
        updates[0] += 1
        moved = _take(k, count, loss, updates[0], r, second)
        total += loss
    v.restore_denormals(denormals)
    return total
