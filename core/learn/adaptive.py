"""Rates of their own for rare and frequent features: the updates of ADF (Sun et al. 2014) and MADF (He & Wang 2012).

    w_i <- exp(-rate_i l2 / N) w_i + rate_i (d/dw_i) log p(y_j | x_j; w)

The decay of the L2 penalty is written as an exponential (1 - x and exp(-x) differ by x^2 / 2, some 1e-9 here), so that
what a row missed while it sat out is the exponential of a sum, paid when it is met again: lazy and exact.

- `ADF`: the rate of a row starts at c. At the end of each window of q updates it is multiplied by
  alpha - (v / q)(alpha - beta), with v the updates of the window that used the row. Rows that sat out have v = 0.
- `MADF`: rate_i = eta_k B_i with a fixed B_i = 1 / (1/b + (1/a - 1/b) freq_i / tokens) for each attribute and label.
"""

from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats
from core.jit import ZERO, inlined, inner, kernel
from core.learn.evaluation import Model
from core.learn.problem import Sequences
from core.learn.rows import PLAIN, Rows, add_to_row, edge_row, existing, load_edges, value_of
from core.learn.updates import batch_direction

ADF, MADF = 0, 1


class Rates(NamedTuple):
    """The rate of each row and when it was last brought up to date."""

    gamma: NDArray[np.float64]  # (rows,) ADF: the rate
    used: NDArray[np.int64]  # (rows,) ADF: updates of the row's window that used it
    window: NDArray[np.int64]  # (rows,) ADF: the window that gamma and used are of
    paid: NDArray[np.float64]  # (rows,) ADF: updates, MADF: sum of eta, up to which decay is paid
    scale: Floats  # (rows * width,) MADF: B; or empty


class Plan(NamedTuple):
    """What stays the same over a pass."""

    kind: int
    batch: int
    decay: float  # l2 / N
    window: int  # q
    alpha: float
    beta: float
    attributes: int
    blocks: int
    labels: int
    width: int
    edges: bool


@inlined
def _owed(g: Rates, row: Any, now: float, p: Plan) -> float:
    """ADF: bring the row's rate to the window of update `now`; returns the sum of rates it missed, a sample each."""
    total, paid = 0.0, g.paid[row]
    while (g.window[row] + 1) * p.window <= now:
        end = float((g.window[row] + 1) * p.window)
        total += g.gamma[row] * (end - paid)
        paid = end
        g.gamma[row] *= p.alpha - (g.used[row] / p.window) * (p.alpha - p.beta)
        g.used[row] = 0
        g.window[row] += 1
    return float(total + g.gamma[row] * (now - paid)) * p.batch


@inlined
def _decay_row(r: Rows, g: Rates, row: Any, amount: float, p: Plan, out: Floats) -> None:
    """out = exp(-decay * amount) times the row, for MADF with each weight's own B in the exponent."""
    kind = r.weights.dtype.type
    flat = v.splat(kind(exp(-p.decay * amount)))
    each = v.splat(kind(-p.decay * amount))
    for j in range(0, p.width, v.LANES):
        k = row * p.width + j
        factor = v.exp(v.multiply(each, v.load(g.scale, k))) if p.kind == MADF else flat
        v.store(out, k, v.multiply(factor, v.load(r.weights, k)))


@inlined
def _catch_up(r: Rows, g: Rates, row: Any, now: float, p: Plan) -> None:
    """Pay the decay that a row missed before update (or sum of rates) `now`."""
    amount = _owed(g, row, now, p) if p.kind == ADF else now - g.paid[row]
    if amount > 0.0:
        _decay_row(r, g, row, amount, p, r.weights)
        g.paid[row] = now


@inner
def _catch_up_sentence(data: Sequences, sentence: int, r: Rows, g: Rates, now: float, p: Plan) -> None:
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for k in range(data.starts[begin], data.starts[end]):
        _catch_up(r, g, np.int64(data.rows[k]), now, p)
    if data.edge_starts.shape[0] > 0:
        for k in range(data.edge_starts[begin], data.edge_starts[end]):
            row = edge_row(data, k, p.blocks, p.labels)
            for y in range(p.labels):
                _catch_up(r, g, row + y, now, p)


@inlined
def _begin_step(r: Rows, g: Rates, row: Any, after: float, rate: float, p: Plan) -> None:
    """This update's own decay, once a row."""
    if g.paid[row] != after:
        _decay_row(r, g, row, g.gamma[row] * p.batch if p.kind == ADF else rate * p.batch, p, r.weights)
        g.paid[row] = after
        g.used[row] += 1


@inlined
def _step_row(
    r: Rows, g: Rates, row: Any, value: float, rate: float, steps: Floats, at: int, p: Plan
) -> None:
    """row += rate_i * value * step."""
    if p.kind == ADF:
        add_to_row(r, row, g.gamma[row] * value, steps, at, p.width)
        return
    kind = r.weights.dtype.type
    value_v = v.splat(kind(rate * value))
    for j in range(0, p.width, v.LANES):
        k = row * p.width + j
        step = existing(r, k, v.load(steps, at + j))
        v.store(r.weights, k, v.fma(v.multiply(value_v, v.load(g.scale, k)), step, v.load(r.weights, k)))


@inner
def _step_blocks(
    data: Sequences, token: int, at: int, after: float, rate: float, r: Rows, g: Rates, c: Chain, p: Plan
) -> None:
    """The blocks of the edge attributes of a token: its matrix stands at `at`."""
    for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
        row = edge_row(data, k, p.blocks, p.labels)
        for y in range(p.labels):
            _begin_step(r, g, row + y, after, rate, p)
            _step_row(r, g, row + y, 1.0, rate, c.matrices, at + y * p.width, p)


@inner
def _update(
    data: Sequences, order: NDArray[np.int64], first: int, last: int, after: float, rate: float, paired: bool,
    r: Rows, g: Rates, c: Chain, p: Plan,
) -> None:  # fmt: skip
    at = ZERO
    for i in range(first, last):
        for token in range(data.offsets[order[i]], data.offsets[order[i] + 1]):
            for k in range(data.starts[token], data.starts[token + 1]):
                row = np.int64(data.rows[k])
                _begin_step(r, g, row, after, rate, p)
                _step_row(r, g, row, float(value_of(data, k)), rate, c.beta, at * p.width, p)
            if c.matrices.shape[0] > 0:
                _step_blocks(data, token, at * p.labels * p.width, after, rate, r, g, c, p)
            at += 1
    if paired:
        for y in range(p.labels):
            _begin_step(r, g, p.attributes + y, after, rate, p)
            _step_row(r, g, p.attributes + y, 1.0, rate, c.pairs, y * p.width, p)


@kernel
def run_adaptive(
    data: Sequences, order: NDArray[np.int64], rates: NDArray[np.float64], first: int, last: int, p: Plan, r: Rows,
    g: Rates, clock: NDArray[np.float64], e: Edges, c: Chain,
) -> float:  # fmt: skip
    """Updates `first` to `last` of a pass; returns the loss met. clock[0] is updates done, or the sum of eta."""
    loss = 0.0
    denormals = v.flush_denormals()
    for b in range(first, last, p.batch):
        stop = min(b + p.batch, last)
        now, rate = clock[0], rates[b]
        after = now + (1.0 if p.kind == ADF else rate * p.batch)
        for i in range(b, stop):
            _catch_up_sentence(data, order[i], r, g, now, p)
        for y in range(p.labels):
            _catch_up(r, g, p.attributes + y, now, p)
        shift = load_edges(r, p.attributes, p.labels, PLAIN, p.width, e)
        m = Model(r, PLAIN, shift, p.blocks, p.labels, p.width)
        met, paired = batch_direction(data, order, b, stop, m, p.edges, e, c)
        _update(data, order, b, stop, after, rate, paired, r, g, c, p)
        clock[0] = after
        loss += met
    v.restore_denormals(denormals)
    return loss


@kernel
def settle_adaptive(r: Rows, g: Rates, now: float, p: Plan, out: Floats) -> None:
    """Every row with its decay paid, into `out`. The weights stay as they are, the rates do not: hand in a copy."""
    for row in range(g.paid.shape[0]):
        amount = _owed(g, row, now, p) if p.kind == ADF else now - g.paid[row]
        _decay_row(r, g, row, amount, p, out)
