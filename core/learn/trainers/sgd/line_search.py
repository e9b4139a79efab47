"""Kernels for the heuristic line search of SGD: Zhou, Qiu & Huang 2011, Algorithm 1, with two changes.

Each update tries three rates around the scheduled rate r, and compares the objective of the sample (Eq. 14)

    l(r) = -log p(y | x) + (l1 / N) sum of |w| over the sample's features.

The search doubles the rate until a trial is worse than no step. Then it halves the rate, starting from the scheduled
one. It takes the best rate.

Change 1: when a rate is worse. In the paper, a rate is worse when l rises. But most features of a sentence occur in no
other sentence. A step that fits the sentence lowers its own l even if it is far too large, so the rate would be doubled
until the model fails on all other sentences. Therefore a trial must achieve the fraction `sufficient` of the decrease
that the slope of the loss predicts, as in other line searches (Armijo 1966). With 0.5, the minimum of a parabola is
just accepted. With 0, the rule is the published one.

Change 2: how l is measured. Scores are linear in the rate, except where the penalty clips. So they are computed twice,
without a step and after the scheduled step, and interpolated for other rates. A trial changes no weight, so none has
to be restored. The pending penalty of the rows is applied before both, because it does not depend on the rate.
"""

from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, kernel
from tagsmith.core.inference import chain as ch
from tagsmith.core.inference.chain import Chain, Edges, Floats
from tagsmith.core.inference.posterior import Sums, by_logarithms, by_scaling
from tagsmith.core.learn.problem.problem import Problem, Sequences
from tagsmith.core.learn.weights.posterior import (
    forbid,
    is_complete,
    score_edges,
    score_tokens,
    weight_of,
)
from tagsmith.core.learn.weights.rows import Scorer, edge_row, read_edges
from tagsmith.core.learn.weights.trees import tree_loss

#: The number of trials, and the factor between their rates (section 3.5).
TRIALS, FACTOR = 3, 0.5


class Scores(NamedTuple):
    """Scores of one sample: of labels, and of transitions, which are shared by all tokens or separate for each."""

    tokens: Floats  # (rows * width,)
    matrices: Floats  # (rows * Y * width,) or empty
    edges: Edges


class Search(NamedTuple):
    """Scratch of the search; empty unless `wanted`."""

    wanted: bool
    sufficient: float
    stamps: NDArray[np.int64]  # (rows,) the last update that used each row
    unique: NDArray[np.int64]  # the distinct rows of the sample
    before: Scores  # without a step
    after: Scores  # after the scheduled step
    chain: Chain  # for the trials
    edges: Edges  # for the trials


class SampleNorm(NamedTuple):
    """The number and norm of a sample's weight rows."""

    rows: int  # the number of rows listed in `Search.unique`
    norm: float  # |w|_1 over these rows


def search(problem: Problem, sufficient: float | None, dtype: Any) -> Search:
    """Allocate scratch for the search; empty if `sufficient` is None."""
    labels, wanted = len(problem.labels), sufficient is not None
    most = int(problem.cells().max(initial=0)) + labels if wanted else 0
    longest = problem.longest if wanted else 0

    def scores() -> Scores:
        matrices = longest * labels * problem.width if problem.rich else 0
        return Scores(
            v.zeros(longest * problem.width, dtype), v.zeros(matrices, dtype), ch.edges(labels, dtype)
        )

    return Search(
        wanted,
        sufficient or 0.0,
        np.zeros(problem.rows if wanted else 0, np.int64),
        np.empty(most, np.int64),
        scores(),
        scores(),
        problem.chain(longest, dtype),
        ch.edges(labels, dtype),
    )


@inlined
def _stamp(row: Any, number: int, count: int, s: Search) -> int:
    """List a row unless this update has already listed it; return the number of listed rows."""
    if s.stamps[row] == number:
        return count
    s.stamps[row] = number
    s.unique[count] = row
    return count + 1


@inner
def unique_rows(data: Sequences, sentence: int, m: Scorer, paired: bool, number: int, s: Search) -> int:
    """List the distinct rows of a sample; return their number."""
    count: int = ZERO
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for cell in range(data.starts[begin], data.starts[end]):
        count = _stamp(np.int64(data.rows[cell]), number, count, s)
    if data.rich:
        for cell in range(data.edge_starts[begin], data.edge_starts[end]):
            row = edge_row(data, cell, m.layout)
            for y in range(m.layout.labels):
                count = _stamp(row + y, number, count, s)
    if paired:
        for row in range(m.layout.attributes, m.layout.blocks):
            count = _stamp(row, number, count, s)
    return count


@inner
def _norm(s: Search, count: int, m: Scorer) -> float:
    """|w|_1 over the sample's rows."""
    norm = 0.0
    kind = m.rows.weights.dtype.type
    for i in range(count):
        row = s.unique[i]
        pending = v.splat(kind(kind(m.reading.base) + kind(m.reading.sign) * m.rows.touched[row]))
        acc = v.zero(m.rows.weights)
        for j in range(0, m.layout.width, v.LANES):
            w = v.soft(v.load(m.rows.weights, row * m.layout.width + j), pending)
            acc = v.add(acc, v.maximum(w, v.subtract(v.zero(m.rows.weights), w)))
        norm += float(v.total(acc))
    return norm


@kernel
def _gathered(data: Sequences, sentence: int, m: Scorer, c: Chain, out: Scores) -> None:
    """Compute the sample's scores at the current weights, using `c` as scratch."""
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    read_edges(m.rows, m.reading, m.layout, out.edges)
    score_tokens(data, sentence, m, out.tokens, ZERO)
    score_edges(data, sentence, m, out.edges, c, ZERO)
    size = m.layout.labels * m.layout.width
    if c.rich:
        for k in range(size, length * size, v.LANES):
            v.store(out.matrices, k, v.load(c.matrices, k))


@inner
def measure_before(data: Sequences, sentence: int, m: Scorer, count: int, s: Search) -> SampleNorm:
    """Save the scores without a step; return the number and norm of the sample's `count` rows."""
    _gathered(data, sentence, m, s.chain, s.before)
    return SampleNorm(count, _norm(s, count, m))


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
def _promise(length: int, m: Scorer, paired: bool, c: Chain, s: Search) -> float:
    """Return the decrease of the loss over the scheduled step, if the loss were linear. `c` has the direction."""
    size = m.layout.labels * m.layout.width
    fall = _product(c.beta, s.before.tokens, s.after.tokens, ZERO, length * m.layout.width)
    if s.chain.rich:
        return fall + _product(c.matrices, s.before.matrices, s.after.matrices, size, length * size)
    if paired:
        fall += _product(c.pairs, s.before.edges.scores, s.after.edges.scores, ZERO, size)
    return fall


@inner
def _put_between(length: int, m: Scorer, part: float, s: Search) -> float:
    """Write the scores of a trial at `part` times the scheduled step; return the shift of the transitions."""
    size = m.layout.labels * m.layout.width
    _between(s.before.tokens, s.after.tokens, part, ZERO, length * m.layout.width, s.chain.psi)
    if s.chain.rich:
        _between(s.before.matrices, s.after.matrices, part, size, length * size, s.chain.matrices)
        return 0.0
    _between(s.before.edges.scores, s.after.edges.scores, part, ZERO, size, s.edges.scores)
    return ch.set_edges(m.layout.labels, m.layout.width, s.edges)


@inner
def _loss_at(data: Sequences, sentence: int, part: float, m: Scorer, s: Search) -> float:
    """Return the sample's loss at `part` times the scheduled step."""
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    if data.trees.present:
        _put_between(length, m, part, s)
        return float(weight_of(data, sentence)) * tree_loss(data, sentence, m.layout, s.chain, ZERO, False)
    own = s.edges
    if s.chain.rich:
        own = ch.edges_of_tokens(s.edges, s.chain, m.layout.labels, m.layout.width)
    shift, gold, complete = _put_between(length, m, part, s), 0.0, is_complete(data, sentence)
    if complete:
        gold = ch.gold_score(
            s.chain.psi, ZERO, data.gold, data.offsets[sentence], length, own, m.layout.width
        )
    log_z = _log_sum(data, sentence, part, shift, m, own, s, False)
    if not complete:
        _put_between(length, m, part, s)
        gold = _log_sum(data, sentence, part, shift, m, own, s, True)
    return float(weight_of(data, sentence)) * (log_z - gold)


@inner
def _log_sum(
    data: Sequences, sentence: int, part: float, shift: float, m: Scorer, own: Edges, s: Search, allowed: bool
) -> float:
    """Return log Z of the scores of a trial, over all labellings or only over those that are allowed."""
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    labels, width = m.layout.labels, m.layout.width
    if allowed:
        forbid(data, sentence, s.chain.psi, ZERO, m.layout)
    log_z = by_scaling(s.chain, ZERO, length, own, shift, Sums.LOG_Z, labels, width)
    if isnan(log_z):
        _put_between(length, m, part, s)
        if allowed:
            forbid(data, sentence, s.chain.psi, ZERO, m.layout)
        log_z = by_logarithms(s.chain, ZERO, length, own, Sums.LOG_Z, labels, width)
    return log_z


@inner
def best_part(
    data: Sequences,
    sentence: int,
    m: Scorer,
    paired: bool,
    start: SampleNorm,
    strength: float,
    c: Chain,
    s: Search,
) -> float:
    """Return the best rate as a fraction of the scheduled one. The scheduled step is already applied to `m`.

    `start` is from before the step, `strength` is l1 / N, and `c` has the direction.
    """
    length = data.offsets[sentence + 1] - data.offsets[sentence]
    _gathered(data, sentence, m, s.chain, s.after)
    promise = s.sufficient * _promise(length, m, paired, c, s)
    penalty = strength * (_norm(s, start.rows, m) - start.norm)
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
