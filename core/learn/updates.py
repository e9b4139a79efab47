"""The updates of stochastic gradient descent, as kernels.

    w <- w + eta_k sum over the batch of (d/dw) log p(y_j | x_j; w),   and a penalty, by one of four rules.

With u_k = (l1 / N) sum of eta up to k:
- `CUMULATIVE`: a weight receives the difference between u_k and the penalty it has had so far (Tsuruoka et al. 2009,
  section 3.2). That is exactly `w = soft(g, u at the weight's last touch)` with g the plain sum of its gradient steps,
  so g and one number a row are all there is to store: a row is read as `soft(g, touched)`, and using it sets `touched`
  to u_k.
- `CLIPPING`: each update shrinks every weight by eta_k l1 / N without crossing zero. Lazily: a row that was settled at
  u' owes u - u' when it is read next, so `touched` holds the u it was settled at.
- `NAIVE`: each update subtracts eta_k l1 / N sign(w) from every weight. A sweep over all of them; kept for comparison.
  Where only seen pairs have weights, these lie side by side to be swept, and rows are filled from them before use.
- `DECAY`: each update multiplies every weight by 1 - eta_k l2 / N. Lazily: weights are stored divided by one scale.

Under DECAY the weights after each update can be summed up on the way, for their mean. With w_k = s_k v_k, v what is
stored and moved by g_k, and c_k = s_1 + .. + s_k, the sum of w_1 .. w_k is

    U_k + c_k v_k,   U_k = U_{k-1} - c_{k-1} g_k

so that no update touches a row outside the sample (Xu 2011).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import ZERO, inlined, inner, kernel
from core.learn.evaluation import Model, sequence_posterior
from core.learn.line_search import Search, best_part, measure_before, unique_rows
from core.learn.pairs import Pairs
from core.learn.problem import Sequences
from core.learn.rows import (
    Reading,
    Rows,
    add_to_row,
    edge_row,
    load_edges,
    settle_row,
    subtract_gold,
    value_of,
)

CUMULATIVE, CLIPPING, NAIVE, DECAY = 0, 1, 2, 3
#: The scale of DECAY is multiplied into the weights when it falls below this, long before float32 would notice.
SMALLEST_SCALE = 1e-5
#: With a mean it is done sooner: U and c v cancel but for the sum, and lose one decimal for each that the scale loses.
SMALLEST_SCALE_WITH_MEAN = 0.1


@kernel
def reading_of(mode: int, total: float) -> Reading:
    """How rows are read under a rule. `total` is u, or the scale of DECAY."""
    if mode == CUMULATIVE:
        return Reading(0.0, 1.0, 1.0)
    if mode == CLIPPING:
        return Reading(total, -1.0, 1.0)
    return Reading(0.0, 0.0, total if mode == DECAY else 1.0)


@kernel
def _after(mode: int, total: float, rate: float, strength: float, count: int) -> float:
    """u, or the scale, after an update of `count` sequences; `strength` is l1 / N or l2 / N."""
    if mode == DECAY:
        return total * max(1.0 - rate * strength * count, 1e-3)
    return total + rate * strength * count


@kernel
def _sweep(weights: Floats, penalty: float) -> None:
    """w -= penalty * sign(w), over everything."""
    kind = weights.dtype.type
    step, zero = kind(penalty), kind(0)
    for i in range(weights.shape[0]):
        w = weights[i]
        weights[i] = w - step if w > zero else w + step if w < zero else w


class Task(NamedTuple):
    """What stays the same over a pass."""

    mode: int
    batch: int
    strength: float  # l1 / N or l2 / N
    attributes: int
    blocks: int
    labels: int
    width: int
    edges: bool


class Mean(NamedTuple):
    """The sum of the weights after updates from number `first` of the pass on; `sums` is empty when none is kept."""

    sums: Floats  # (rows * width,) U
    totals: NDArray[np.float64]  # (2,) c, and the updates summed
    first: int


class Swept(NamedTuple):
    """What NAIVE sweeps where only some weights exist: `values` of the parameters of `pairs`. Else empty."""

    pairs: Pairs
    values: Floats  # (parameters,)


@inner
def _move_row(p: Swept, row: int, r: Rows, width: int, keep: bool) -> None:
    """Fill a row from what is swept, or keep what has become of it."""
    for i in range(p.pairs.starts[row], p.pairs.starts[row + 1]):
        if keep:
            p.values[i] = r.weights[row * width + p.pairs.labels[i]]
        else:
            r.weights[row * width + p.pairs.labels[i]] = p.values[i]


@inner
def _move_rows(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, k: Task, p: Swept, r: Rows, keep: bool
) -> None:
    """Fill the rows of a batch from what is swept, or keep what has become of them."""
    for i in range(first, last):
        begin, end = data.offsets[order[i]], data.offsets[order[i] + 1]
        for cell in range(data.starts[begin], data.starts[end]):
            _move_row(p, data.rows[cell], r, k.width, keep)
        if data.edge_starts.shape[0] > 0:
            for cell in range(data.edge_starts[begin], data.edge_starts[end]):
                row = edge_row(data, cell, k.blocks, k.labels)
                for y in range(k.labels):
                    _move_row(p, row + y, r, k.width, keep)
    for row in range(k.attributes, k.blocks):
        _move_row(p, row, r, k.width, keep)


@kernel
def _rescale(weights: Floats, scale: float, mean: Mean) -> None:
    """Multiply the scale into the weights, and c v into U."""
    kind = weights.dtype.type
    for i in range(weights.shape[0]):
        if mean.sums.shape[0] > 0:
            mean.sums[i] += kind(mean.totals[0]) * weights[i]
        weights[i] *= kind(scale)
    mean.totals[0] = 0.0


@inner
def _add_steps(
    data: Sequences, sentence: int, at: Any, rate: float, mark: float, k: Task, r: Rows, c: Chain
) -> None:
    """Add rate * `beta` to the rows of a sentence, rate * `matrices` to its edge blocks, and mark them touched.

    Not where rows owe nothing: a mark costs a line of the cache.
    """
    kind = r.touched.dtype.type
    marked = k.mode in (CUMULATIVE, CLIPPING)
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        step = (at + token - begin) * k.width
        for cell in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[cell])
            if marked:
                r.touched[row] = kind(mark)
            add_to_row(r, row, kind(rate) * kind(value_of(data, cell)), c.beta, step, k.width)
    if c.matrices.shape[0] > 0:
        for token in range(begin + 1, end):
            step = (at + token - begin) * k.labels * k.width
            for cell in range(data.edge_starts[token], data.edge_starts[token + 1]):
                row = edge_row(data, cell, k.blocks, k.labels)
                for y in range(k.labels):
                    if marked:
                        r.touched[row + y] = kind(mark)
                    add_to_row(r, row + y, kind(rate), c.matrices, step + y * k.width, k.width)


@inner
def _add_edge_steps(
    attributes: int, labels: int, rate: float, mark: float, r: Rows, c: Chain, width: int
) -> None:
    for y in range(labels):
        r.touched[attributes + y] = r.touched.dtype.type(mark)
        add_to_row(r, attributes + y, rate, c.pairs, y * width, width)


@inlined
def _settle(row: Any, mark: Any, r: Rows, width: int) -> None:
    """Pay what a row owes at u = mark. Met again it owes nothing."""
    settle_row(r, row, mark - r.touched[row], width)
    r.touched[row] = mark


@inner
def _settle_rows(data: Sequences, sentence: int, before: float, k: Task, r: Rows) -> None:
    """Pay what the rows of a sentence owe at u = before."""
    mark = r.touched.dtype.type(before)
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for cell in range(data.starts[begin], data.starts[end]):
        _settle(np.int64(data.rows[cell]), mark, r, k.width)
    if data.edge_starts.shape[0] > 0:
        for cell in range(data.edge_starts[begin], data.edge_starts[end]):
            row = edge_row(data, cell, k.blocks, k.labels)
            for y in range(k.labels):
                _settle(row + y, mark, r, k.width)


@inner
def _settle_edges(k: Task, before: float, r: Rows) -> None:
    mark = r.touched.dtype.type(before)
    for row in range(k.attributes, k.blocks):
        _settle(row, mark, r, k.width)


@inner
def _edge_direction(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, pairs: Floats, labels: int, width: int
) -> None:
    """Turn expected transitions into the direction of ascent: gold counts - expected."""
    minus = v.splat(pairs.dtype.type(-1))
    for k in range(0, labels * width, v.LANES):
        v.store(pairs, k, v.multiply(v.load(pairs, k), minus))
    for i in range(first, last):
        for token in range(data.offsets[order[i]] + 1, data.offsets[order[i] + 1]):
            pairs[data.gold[token - 1] * width + data.gold[token]] += pairs.dtype.type(1)


@inlined
def batch_direction(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, m: Model, edges: bool, e: Edges, c: Chain
) -> tuple[float, bool]:  # fmt: skip
    """The direction of ascent of a batch into `beta`, `pairs` and, with rich edges, `matrices`.

    Returns the batch's loss, and whether it has transitions that are features of their own.
    """
    c.pairs[:] = 0
    at, paired, loss = ZERO, False, 0.0
    for i in range(first, last):
        begin, n = data.offsets[order[i]], data.offsets[order[i] + 1] - data.offsets[order[i]]
        if n > 0:
            loss += sequence_posterior(data, order[i], m, edges, e, c, at)
            subtract_gold(c, at, data.gold, begin, n, m.width)
            paired |= edges and n > 1
            at += n
    if paired:
        _edge_direction(data, order, first, last, c.pairs, m.labels, m.width)
    return loss, paired


@inner
def _update(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, rate: float, before: float, after: float,
    paired: bool, k: Task, r: Rows, c: Chain, p: Swept,
) -> None:  # fmt: skip
    """One step along the direction in `beta` and `pairs`, with its penalty."""
    mark = before if k.mode == CLIPPING else after
    sparse = p.values.shape[0] > 0
    if k.mode == NAIVE and sparse:
        _sweep(p.values, after - before)
        _move_rows(data, order, first, last, k, p, r, False)
    elif k.mode == NAIVE:
        _sweep(r.weights, after - before)
    elif k.mode == CLIPPING:
        for i in range(first, last):
            _settle_rows(data, order[i], before, k, r)
        if paired:
            _settle_edges(k, before, r)
    if k.mode == DECAY:
        rate /= after
    at = ZERO
    for i in range(first, last):
        _add_steps(data, order[i], at, rate, mark, k, r, c)
        at += data.offsets[order[i] + 1] - data.offsets[order[i]]
    if paired:
        _add_edge_steps(k.attributes, k.labels, rate, mark, r, c, k.width)
    if sparse:
        _move_rows(data, order, first, last, k, p, r, True)


@kernel
def _follow(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, rate: float, scale: float, paired: bool,
    k: Task, r: Rows, c: Chain, mean: Mean,
) -> None:  # fmt: skip
    """U -= c g for the step just taken at `rate`; then the weights after it, `scale` times what is stored, count."""
    sums, step = Rows(mean.sums, r.touched, r.mask), -mean.totals[0] * rate / scale
    at = ZERO
    if step != 0.0:
        for i in range(first, last):
            _add_steps(data, order[i], at, step, scale, k, sums, c)
            at += data.offsets[order[i] + 1] - data.offsets[order[i]]
        if paired:
            _add_edge_steps(k.attributes, k.labels, step, scale, sums, c, k.width)
    mean.totals[0] += scale
    mean.totals[1] += 1.0


@inner
def _searched_step(
    data: Sequences, order: NDArray[np.int64], i: int, rate: float, before: float, after: float, paired: bool, k: Task,
    r: Rows, m: Model, c: Chain, s: Search, p: Swept,
) -> float:  # fmt: skip
    """The step of a sample at the rate that `line_search` finds around the scheduled one; returns u after it."""
    count = unique_rows(data, order[i], m, paired, i + 1, s)
    if k.mode == CUMULATIVE:
        for row in s.unique[:count]:
            r.touched[row] = before
    norm = measure_before(data, order[i], m, count, s)
    _update(data, order, i, i + 1, rate, before, after, paired, k, r, c, p)
    moved = Model(r, reading_of(k.mode, after), 0.0, k.blocks, k.labels, k.width)
    part = best_part(data, order[i], moved, paired, count, norm, k.strength, c, s)
    if part != 1.0:
        after = _after(k.mode, before, part * rate, k.strength, 1)
        _update(data, order, i, i + 1, (part - 1.0) * rate, before, after, paired, k, r, c, p)
    return after


@kernel
def run_updates(
    data: Sequences, order: NDArray[np.int64], rates: NDArray[np.float64], first: int, last: int, k: Task, r: Rows,
    total: NDArray[np.float64], e: Edges, c: Chain, s: Search, p: Swept, mean: Mean,
) -> float:  # fmt: skip
    """Updates `first` to `last` of a pass; returns the loss met on the way. total[0] is u, or the scale of DECAY."""
    loss = 0.0
    denormals = v.flush_denormals()
    averaged = mean.sums.shape[0] > 0
    smallest = SMALLEST_SCALE_WITH_MEAN if averaged else SMALLEST_SCALE
    sparse = p.values.shape[0] > 0
    rows = p.pairs.starts.shape[0] - 1 if sparse else 0
    for row in range(rows):
        _move_row(p, row, r, k.width, True)
    for b in range(first, last, k.batch):
        stop = min(b + k.batch, last)
        if sparse:
            _move_rows(data, order, b, stop, k, p, r, False)
        rate, before = rates[b], total[0]
        reading = reading_of(k.mode, before)
        shift = load_edges(r, k.attributes, k.labels, reading, k.width, e)
        model = Model(r, reading, shift, k.blocks, k.labels, k.width)
        met, paired = batch_direction(data, order, b, stop, model, k.edges, e, c)
        total[0] = _after(k.mode, before, rate, k.strength, stop - b)
        if s.stamps.shape[0] > 0 and data.offsets[order[b] + 1] > data.offsets[order[b]]:
            total[0] = _searched_step(data, order, b, rate, before, total[0], paired, k, r, model, c, s, p)
        else:
            _update(data, order, b, stop, rate, before, total[0], paired, k, r, c, p)
        if averaged and b >= mean.first:
            _follow(data, order, b, stop, rate, total[0], paired, k, r, c, mean)
        if k.mode == DECAY and total[0] < smallest:
            _rescale(r.weights, total[0], mean)
            total[0] = 1.0
        loss += met
    for row in range(rows):
        _move_row(p, row, r, k.width, False)
    v.restore_denormals(denormals)
    return loss
