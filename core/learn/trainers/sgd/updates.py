"""Kernels for the updates of stochastic gradient descent.

    w <- w + eta_k sum over the batch of (d/dw) log p(y_j | x_j; w),   and a penalty, by one of the rules of `Penalty`.

With u_k = (l1 / N) sum of eta up to k:
- `CUMULATIVE`: a weight receives the difference between u_k and the penalty it has received so far (Tsuruoka et al.
  2009, section 3.2). This is exactly `w = soft(g, u at the weight's last update)`, where g is the plain sum of its
  gradient steps. We store g and, per row, `touched`. A row is read as `soft(g, touched)`, and an update sets `touched`
  to u_k.
- `CLIPPING`: each update shrinks every weight by eta_k l1 / N without crossing zero. Lazily: if the penalty of a row is
  applied up to u', u - u' is still to be applied when the row is read next. `touched` holds u'.
- `NAIVE`: each update subtracts eta_k l1 / N sign(w) from every weight, in a sweep over all weights. It exists for
  comparison. If only seen pairs have weights, these are packed for the sweep, and rows are filled from them before use.
- `DECAY`: each update multiplies every weight by 1 - eta_k l2 / N. Lazily: weights are stored divided by one scale.

Under DECAY, the weights after each update can be summed lazily, for their mean. With w_k = s_k v_k, where v_k is stored
and moves by g_k, and c_k = s_1 + .. + s_k, the sum of w_1 .. w_k is

    U_k + c_k v_k,   U_k = U_{k-1} - c_{k-1} g_k

so that no update touches a row outside the sample (Xu 2011).
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, keep_apart, kernel
from tagsmith.core.inference.chain import Chain, Floats
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Sequences
from tagsmith.core.learn.trainers.sgd.line_search import Search, best_part, measure_before, unique_rows
from tagsmith.core.learn.weights.pairs import Pairs
from tagsmith.core.learn.weights.posterior import Buffers, Sample, batch_direction
from tagsmith.core.learn.weights.rows import (
    Reading,
    Rows,
    Scorer,
    add_to_row,
    edge_row,
    load_edges,
    settle_row,
    value_of,
)
from tagsmith.core.learn.weights.trees import lanes_of


class Penalty(IntEnum):
    """How a penalty is applied."""

    CUMULATIVE = 0
    CLIPPING = 1
    NAIVE = 2
    DECAY = 3


#: When the scale of DECAY falls below this, it is multiplied into the weights, long before float32 loses precision.
SMALLEST_SCALE = 1e-5
#: The limit with a mean is higher: U and c v nearly cancel, so the sum loses one digit for each that the scale loses.
SMALLEST_SCALE_WITH_MEAN = 0.1


@kernel
def reading_of(penalty: int, total: float) -> Reading:
    """Return how rows are read under a rule. `total` is u, or the scale of DECAY."""
    if penalty == Penalty.CUMULATIVE:
        return Reading(0.0, 1.0, 1.0)
    if penalty == Penalty.CLIPPING:
        return Reading(total, -1.0, 1.0)
    return Reading(0.0, 0.0, total if penalty == Penalty.DECAY else 1.0)


@kernel
def _after(penalty: int, total: float, rate: float, strength: float, count: int) -> float:
    """Return u, or the scale, after an update of `count` sequences; `strength` is l1 / N or l2 / N."""
    if penalty == Penalty.DECAY:
        return total * max(1.0 - rate * strength * count, 1e-3)
    return total + rate * strength * count


@kernel
def _sweep(weights: Floats, amount: float) -> None:
    """w -= amount * sign(w), for all weights."""
    kind = weights.dtype.type
    step, zero = kind(amount), kind(0)
    for i in range(weights.shape[0]):
        w = weights[i]
        weights[i] = w - step if w > zero else w + step if w < zero else w


class DescentPlan(NamedTuple):
    """Values that are constant during a pass."""

    penalty: int  # a `Penalty` value
    batch: int
    strength: float  # l1 / N or l2 / N
    layout: Layout


class PassData(NamedTuple):
    """The sequences of a pass."""

    data: Sequences
    order: NDArray[np.int64]  # (sentences,)
    rates: NDArray[np.float64]  # (sentences,) the rate of the update that starts at each sentence


class Mean(NamedTuple):
    """If `wanted`, the sum of the weights after each update, from update `first` of the pass on."""

    wanted: bool
    sums: Floats  # (rows * width,) U
    totals: NDArray[np.float64]  # (2,) c, and the number of updates summed
    first: int


class Swept(NamedTuple):
    """The packed `values` of the parameters of `pairs`, for NAIVE if only some weights exist. Empty unless `sparse`."""

    sparse: bool
    pairs: Pairs
    values: Floats  # (parameters,)


class Extras(NamedTuple):
    """Inputs that only some trainers use."""

    search: Search
    swept: Swept
    mean: Mean


class DescentStep(NamedTuple):
    """One update."""

    rate: float
    before: float  # u, or the scale of DECAY, before the update
    after: float  # and after it
    paired: bool  # whether `pairs` has a direction too


@inner
def _move_row(p: Swept, row: int, r: Rows, width: int, keep: bool) -> None:
    """Copy a row from the packed values or, with `keep`, back to them."""
    for i in range(p.pairs.starts[row], p.pairs.starts[row + 1]):
        if keep:
            p.values[i] = r.weights[row * width + p.pairs.labels[i]]
        else:
            r.weights[row * width + p.pairs.labels[i]] = p.values[i]


@inner
def _move_rows(data: Sequences, s: Sample, layout: Layout, p: Swept, r: Rows, keep: bool) -> None:
    """Copy the rows of a sample from the packed values or, with `keep`, back to them."""
    for i in range(s.first, s.last):
        begin, end = data.offsets[s.order[i]], data.offsets[s.order[i] + 1]
        for cell in range(data.starts[begin], data.starts[end]):
            _move_row(p, data.rows[cell], r, layout.width, keep)
        if data.rich:
            for cell in range(data.edge_starts[begin], data.edge_starts[end]):
                row = edge_row(data, cell, layout)
                for y in range(layout.labels):
                    _move_row(p, row + y, r, layout.width, keep)
    for row in range(layout.attributes, layout.blocks):
        _move_row(p, row, r, layout.width, keep)


@kernel
def _rescale(weights: Floats, scale: float, mean: Mean) -> None:
    """Multiply the scale into the weights, and c v into U."""
    kind = weights.dtype.type
    for i in range(weights.shape[0]):
        if mean.wanted:
            mean.sums[i] += kind(mean.totals[0]) * weights[i]
        weights[i] *= kind(scale)
    mean.totals[0] = 0.0


@inner
def _add_steps(
    data: Sequences, sentence: int, at: Any, rate: float, mark: float, k: DescentPlan, r: Rows, c: Chain
) -> None:
    """Add rate * `beta` to the rows of a sentence and rate * `matrices` to its edge blocks; set `touched`.

    Rules without pending penalties skip `touched`, which saves a cache line per row.
    """
    kind, layout = r.touched.dtype.type, k.layout
    marked = k.penalty in (Penalty.CUMULATIVE, Penalty.CLIPPING)
    begin, end, width = data.offsets[sentence], data.offsets[sentence + 1], layout.width
    if data.trees.present:
        _add_steps_of_arcs(data, sentence, at, rate, mark, k, r, c)
        return
    for token in range(begin, end):
        step = (at + token - begin) * width
        for cell in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[cell])
            if marked:
                r.touched[row] = kind(mark)
            add_to_row(r, row, kind(rate) * kind(value_of(data, cell)), c.beta, step, width, width)
    if c.rich:
        for token in range(begin + 1, end):
            step = (at + token - begin) * layout.labels * layout.width
            for cell in range(data.edge_starts[token], data.edge_starts[token + 1]):
                row = edge_row(data, cell, layout)
                for y in range(layout.labels):
                    if marked:
                        r.touched[row + y] = kind(mark)
                    at_row = step + y * layout.width
                    add_to_row(r, row + y, kind(rate), c.matrices, at_row, layout.width, layout.width)


@inner
def _add_steps_of_arcs(
    data: Sequences, sentence: int, at: Any, rate: float, mark: float, k: DescentPlan, r: Rows, c: Chain
) -> None:
    """The same for arcs, of which most have no step for relations. Apart, so that chains have a fixed loop."""
    keep_apart()
    kind, begin, width = r.touched.dtype.type, data.offsets[sentence], k.layout.width
    marked = k.penalty in (Penalty.CUMULATIVE, Penalty.CLIPPING)
    for token in range(begin, data.offsets[sentence + 1]):
        step, lanes = (at + token - begin) * width, lanes_of(data, token, k.layout)
        for cell in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[cell])
            if marked:
                r.touched[row] = kind(mark)
            add_to_row(r, row, kind(rate) * kind(value_of(data, cell)), c.beta, step, width, lanes)


@inner
def _add_edge_steps(layout: Layout, rate: float, mark: float, r: Rows, c: Chain) -> None:
    for y in range(layout.labels):
        row = layout.attributes + y
        r.touched[row] = r.touched.dtype.type(mark)
        add_to_row(r, row, rate, c.pairs, y * layout.width, layout.width, layout.width)


@inlined
def _settle(row: Any, mark: Any, r: Rows, width: int) -> None:
    """Apply the pending penalty of a row up to u = mark. A second call has no effect."""
    settle_row(r, row, mark - r.touched[row], width)
    r.touched[row] = mark


@inner
def _settle_rows(data: Sequences, sentence: int, before: float, layout: Layout, r: Rows) -> None:
    """Apply the pending penalty of the rows of a sentence up to u = before."""
    mark = r.touched.dtype.type(before)
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for cell in range(data.starts[begin], data.starts[end]):
        _settle(np.int64(data.rows[cell]), mark, r, layout.width)
    if data.rich:
        for cell in range(data.edge_starts[begin], data.edge_starts[end]):
            row = edge_row(data, cell, layout)
            for y in range(layout.labels):
                _settle(row + y, mark, r, layout.width)


@inner
def _settle_edges(layout: Layout, before: float, r: Rows) -> None:
    mark = r.touched.dtype.type(before)
    for row in range(layout.attributes, layout.blocks):
        _settle(row, mark, r, layout.width)


@inner
def _update(
    data: Sequences, s: Sample, step: DescentStep, k: DescentPlan, r: Rows, c: Chain, p: Swept
) -> None:
    """Take one step along the direction in `beta` and `pairs`, with its penalty."""
    mark, rate = step.before if k.penalty == Penalty.CLIPPING else step.after, step.rate
    if k.penalty == Penalty.NAIVE and p.sparse:
        _sweep(p.values, step.after - step.before)
        _move_rows(data, s, k.layout, p, r, False)
    elif k.penalty == Penalty.NAIVE:
        _sweep(r.weights, step.after - step.before)
    elif k.penalty == Penalty.CLIPPING:
        for i in range(s.first, s.last):
            _settle_rows(data, s.order[i], step.before, k.layout, r)
        if step.paired:
            _settle_edges(k.layout, step.before, r)
    if k.penalty == Penalty.DECAY:
        rate /= step.after
    at = ZERO
    for i in range(s.first, s.last):
        _add_steps(data, s.order[i], at, rate, mark, k, r, c)
        at += data.offsets[s.order[i] + 1] - data.offsets[s.order[i]]
    if step.paired:
        _add_edge_steps(k.layout, rate, mark, r, c)
    if p.sparse:
        _move_rows(data, s, k.layout, p, r, True)


@kernel
def _follow(
    data: Sequences, s: Sample, step: DescentStep, k: DescentPlan, r: Rows, c: Chain, mean: Mean
) -> None:
    """Account for the last step in the mean: U -= c g, then c += the scale."""
    sums, scale = Rows(mean.sums, r.touched, r.mask, r.masked), step.after
    back, at = -mean.totals[0] * step.rate / scale, ZERO
    if back != 0.0:
        for i in range(s.first, s.last):
            _add_steps(data, s.order[i], at, back, scale, k, sums, c)
            at += data.offsets[s.order[i] + 1] - data.offsets[s.order[i]]
        if step.paired:
            _add_edge_steps(k.layout, back, scale, sums, c)
    mean.totals[0] += scale
    mean.totals[1] += 1.0


@inner
def _searched_step(
    data: Sequences, s: Sample, step: DescentStep, k: DescentPlan, m: Scorer, c: Chain, x: Extras
) -> float:
    """Take the step of a sample at the rate that `line_search` finds around the scheduled one; return u after it."""
    sentence, r = s.order[s.first], m.rows
    count = unique_rows(data, sentence, m, step.paired, s.first + 1, x.search)
    if k.penalty == Penalty.CUMULATIVE:
        for row in x.search.unique[:count]:
            r.touched[row] = step.before
    start = measure_before(data, sentence, m, count, x.search)
    _update(data, s, step, k, r, c, x.swept)
    moved = Scorer(r, reading_of(k.penalty, step.after), 0.0, k.layout)
    part = best_part(data, sentence, moved, step.paired, start, k.strength, c, x.search)
    after = step.after
    if part != 1.0:
        after = _after(k.penalty, step.before, part * step.rate, k.strength, 1)
        rest = DescentStep((part - 1.0) * step.rate, step.before, after, step.paired)
        _update(data, s, rest, k, r, c, x.swept)
    return after


@kernel
def run_updates(
    d: PassData,
    first: int,
    last: int,
    k: DescentPlan,
    r: Rows,
    total: NDArray[np.float64],
    b: Buffers,
    x: Extras,
) -> float:
    """Run updates `first` to `last` of a pass; return their total loss. total[0] is u, or the scale of DECAY."""
    loss, data = 0.0, d.data
    denormals = v.flush_denormals()
    smallest = SMALLEST_SCALE_WITH_MEAN if x.mean.wanted else SMALLEST_SCALE
    rows = x.swept.pairs.starts.shape[0] - 1 if x.swept.sparse else 0
    for row in range(rows):
        _move_row(x.swept, row, r, k.layout.width, True)
    for i in range(first, last, k.batch):
        s = Sample(d.order, i, min(i + k.batch, last))
        if x.swept.sparse:
            _move_rows(data, s, k.layout, x.swept, r, False)
        rate, before = d.rates[i], total[0]
        reading = reading_of(k.penalty, before)
        m = Scorer(r, reading, load_edges(r, reading, k.layout, b.edges), k.layout)
        met, paired = batch_direction(data, s, m, b)
        total[0] = _after(k.penalty, before, rate, k.strength, s.last - i)
        step = DescentStep(rate, before, total[0], paired)
        if x.search.wanted and data.offsets[d.order[i] + 1] > data.offsets[d.order[i]]:
            total[0] = _searched_step(data, s, step, k, m, b.chain, x)
        else:
            _update(data, s, step, k, r, b.chain, x.swept)
        if x.mean.wanted and i >= x.mean.first:
            _follow(data, s, step, k, r, b.chain, x.mean)
        if k.penalty == Penalty.DECAY and total[0] < smallest:
            _rescale(r.weights, total[0], x.mean)
            total[0] = 1.0
        loss += met
    for row in range(rows):
        _move_row(x.swept, row, r, k.layout.width, False)
    v.restore_denormals(denormals)
    return loss
