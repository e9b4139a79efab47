"""The heuristic line search of SGD, as kernels: Zhou, Qiu & Huang 2011, Algorithm 1, with two changes.

At each update three rates are tried around the scheduled one, r, by what they make of the sample's own objective
(Eq. 14)

    l(r) = -log p(y | x) + (l1 / N) sum of |w| over the sample's features.

Rates are doubled until one is worse than no step at all; from then on they are halved, starting from the scheduled one.
The best is taken.

What is worse. As published, a rate is worse when l rises. But a sentence shares most of its features with no other: a
step that fits it by heart lowers its own l however large it is, so rates are doubled again and again, until nothing
else is right any more. So a trial must bring the part `sufficient` of what the slope of the loss promises, as in other
line searches (Armijo 1966). With a half, the least point of a parabola just passes. With 0 the rule is the published.

How l is measured. Scores move along a straight line as the rate grows, but for what the penalty clips. So they are
gathered twice, without a step and after the scheduled one, and read off that line for other rates: no weight is changed
for a trial, or has to be restored. What a row owes since it was met last is paid before either, for it does not depend
on the rate.
"""

from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import ZERO, inlined, inner, kernel
from core.learn.evaluation import Model, log_loss, score_edges, score_tokens, scored_loss
from core.learn.problem import Problem, Sequences
from core.learn.rows import edge_row, read_edges

#: Trials, and the factor between their rates (section 3.5).
TRIALS, FACTOR = 3, 0.5


class Scores(NamedTuple):
    """Scores of one sample: of labels, and of transitions, which all tokens share or each has for itself."""

    tokens: Floats  # (rows * width,)
    matrices: Floats  # (rows * Y * width,) or empty
    edges: Edges


class Search(NamedTuple):
    """Scratch of the search; `stamps` is empty when rates are not searched for."""

    sufficient: float
    stamps: NDArray[np.int64]  # (rows,) the update in which a row was last met
    unique: NDArray[np.int64]  # rows of the sample, each once
    before: Scores  # without a step
    after: Scores  # after the scheduled step
    chain: Chain  # of the trials
    edges: Edges  # of the trials


def search(problem: Problem, sufficient: float | None, dtype: Any) -> Search:
    """Room to search for rates; none if `sufficient` is not given."""
    labels, wanted = len(problem.labels), sufficient is not None
    most = int(problem.cells().max(initial=0)) + labels if wanted else 0
    longest = problem.longest if wanted else 0

    def scores() -> Scores:
        matrices = longest * labels * problem.width if problem.rich else 0
        return Scores(
            v.zeros(longest * problem.width, dtype), v.zeros(matrices, dtype), ch.edges(labels, dtype)
        )

    return Search(
        sufficient or 0.0,
        np.zeros(problem.rows if wanted else 0, np.int64),
        np.empty(most, np.int64),
        scores(),
        scores(),
        ch.chain(longest, labels, dtype, rich=problem.rich),
        ch.edges(labels, dtype),
    )


@inlined
def _stamp(row: Any, number: int, count: int, s: Search) -> int:
    """List a row, unless it was met in this update; returns how many are listed."""
    if s.stamps[row] == number:
        return count
    s.stamps[row] = number
    s.unique[count] = row
    return count + 1


@inner
def unique_rows(data: Sequences, sentence: int, m: Model, paired: bool, number: int, s: Search) -> int:
    """List the rows that a sample uses, each once; returns how many."""
    count: int = ZERO
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for cell in range(data.starts[begin], data.starts[end]):
        count = _stamp(np.int64(data.rows[cell]), number, count, s)
    if data.edge_starts.shape[0] > 0:
        for cell in range(data.edge_starts[begin], data.edge_starts[end]):
            row = edge_row(data, cell, m.blocks, m.labels)
            for y in range(m.labels):
                count = _stamp(row + y, number, count, s)
    if paired:
        for row in range(m.blocks - m.labels, m.blocks):
            count = _stamp(row, number, count, s)
    return count


@inner
def _norm(s: Search, count: int, m: Model) -> float:
    """|w|_1 over the sample's rows."""
    norm = 0.0
    kind = m.rows.weights.dtype.type
    for i in range(count):
        row = s.unique[i]
        owed = v.splat(kind(kind(m.reading.base) + kind(m.reading.sign) * m.rows.touched[row]))
        acc = v.zero(m.rows.weights)
        for j in range(0, m.width, v.LANES):
            w = v.soft(v.load(m.rows.weights, row * m.width + j), owed)
            acc = v.add(acc, v.maximum(w, v.subtract(v.zero(m.rows.weights), w)))
        norm += float(v.total(acc))
    return norm


@kernel
def _gathered(data: Sequences, sentence: int, m: Model, c: Chain, out: Scores) -> None:
    """The sample's scores as the weights are now, by way of `c`."""
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    read_edges(m.rows, m.blocks - m.labels, m.labels, m.reading, m.width, out.edges)
    score_tokens(data, sentence, m, out.tokens, ZERO)
    score_edges(data, sentence, m, out.edges, c, ZERO)
    size = m.labels * m.width
    if out.matrices.shape[0] > 0:
        for k in range(size, length * size, v.LANES):
            v.store(out.matrices, k, v.load(c.matrices, k))


@inner
def measure_before(data: Sequences, sentence: int, m: Model, count: int, s: Search) -> float:
    """Keep the scores without a step; returns the norm of the sample's `count` rows."""
    _gathered(data, sentence, m, s.chain, s.before)
    return _norm(s, count, m)


@inlined
def _between(before: Floats, after: Floats, part: float, first: Any, last: Any, out: Floats) -> None:
    """out = before + part * (after - before)."""
    part_v = v.splat(out.dtype.type(part))
    for k in range(first, last, v.LANES):
        here = v.load(before, k)
        v.store(out, k, v.fma(part_v, v.subtract(v.load(after, k), here), here))


@inlined
def _product(direction: Floats, before: Floats, after: Floats, first: Any, last: Any) -> float:
    """direction . (after - before)."""
    total = 0.0
    for k in range(first, last, v.LANES):
        moved = v.subtract(v.load(after, k), v.load(before, k))
        total += float(v.total(v.multiply(v.load(direction, k), moved)))
    return total


@inner
def _promise(length: int, m: Model, paired: bool, c: Chain, s: Search) -> float:
    """What the loss would fall by over the scheduled step if it went on as it begins. `c` has the direction."""
    size = m.labels * m.width
    fall = _product(c.beta, s.before.tokens, s.after.tokens, ZERO, length * m.width)
    if s.before.matrices.shape[0] > 0:
        return fall + _product(c.matrices, s.before.matrices, s.after.matrices, size, length * size)
    if paired:
        fall += _product(c.pairs, s.before.edges.scores, s.after.edges.scores, ZERO, size)
    return fall


@inner
def _put_between(length: int, m: Model, part: float, s: Search) -> float:
    """The scores of a trial, `part` times the scheduled step; returns the shift of the transitions."""
    size = m.labels * m.width
    _between(s.before.tokens, s.after.tokens, part, ZERO, length * m.width, s.chain.psi)
    if s.before.matrices.shape[0] > 0:
        _between(s.before.matrices, s.after.matrices, part, size, length * size, s.chain.matrices)
        return 0.0
    _between(s.before.edges.scores, s.after.edges.scores, part, ZERO, size, s.edges.scores)
    return ch.set_edges(m.labels, m.width, s.edges)


@inner
def _loss_at(data: Sequences, sentence: int, part: float, m: Model, s: Search) -> float:
    """The sample's loss at `part` times the scheduled step."""
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    own = s.edges
    if s.chain.matrices.shape[0] > 0:
        own = ch.edges_of_tokens(s.edges, s.chain, m.labels, m.width)
    shift = _put_between(length, m, part, s)
    gold = ch.gold_score(s.chain.psi, ZERO, data.gold, data.offsets[sentence], length, own, m.width)
    loss = scored_loss(gold, length, own, shift, m, s.chain, ZERO)
    if isnan(loss):
        _put_between(length, m, part, s)
        loss = log_loss(gold, length, own, m, s.chain, ZERO)
    return loss


@inner
def best_part(
    data: Sequences, sentence: int, m: Model, paired: bool, count: int, norm: float, strength: float, c: Chain,
    s: Search,
) -> float:  # fmt: skip
    """The best rate, as a part of the scheduled one, whose step has been made: `m` reads the weights after it.

    `norm` is that before it, `strength` is l1 / N, and `c` has the direction.
    """
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    _gathered(data, sentence, m, s.chain, s.after)
    promise = s.sufficient * _promise(length, m, paired, c, s)
    penalty = strength * (_norm(s, count, m) - norm)
    loss = _loss_at(data, sentence, 0.0, m, s)
    part, best, lowest, least, down = 1.0, 0.0, inf, inf, False
    for _ in range(TRIALS):
        change = _loss_at(data, sentence, part, m, s) - loss + part * penalty
        worse = not change <= -part * promise
        least = min(least, part)
        if not worse and change < lowest:
            best, lowest = part, change
        if worse and not down:
            down, part = True, FACTOR
        else:
            part = part * FACTOR if down else part / FACTOR
    return least if best == 0.0 else best
