"""Learning rates that depend on feature frequency: the updates of ADF (Sun et al. 2014) and MADF (He & Wang 2012).

    w_i <- exp(-rate_i |B| l2 / N) w_i + rate_i sum over the batch B of (d/dw_i) log p(y_j | x_j; w)

Each sentence contributes l2 / N of the penalty (Sun et al., section 3.1: g_t). So the smaller last batch of a pass
decays the weights in proportion to its sentences. The decay is an exponential (1 - x and exp(-x) differ by x^2 / 2,
about 1e-9 here). The decay that a row missed is then the exponential of a sum, and is applied at the next use of the
row.

- `ADF`: the rate of a row starts at c. At the end of each window of q updates it is multiplied by
  alpha - (v / q)(alpha - beta), where v is the number of updates in the window that used the row.
  Unused rows have v = 0.
- `MADF`: rate_i = eta_k B_i with a fixed B_i = 1 / (1/b + (1/a - 1/b) freq_i / tokens) for each attribute and label.
"""

from enum import IntEnum
from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import ZERO, inlined, inner, keep_apart, kernel
from tagsmith.core.inference.chain import Chain, Floats
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Sequences
from tagsmith.core.learn.trainers.sgd.updates import PassData
from tagsmith.core.learn.weights.posterior import Buffers, Sample, batch_direction
from tagsmith.core.learn.weights.rows import (
    PLAIN,
    Rows,
    Scorer,
    add_to_row,
    edge_row,
    existing,
    load_edges,
    value_of,
)
from tagsmith.core.learn.weights.trees import lanes_of


class Frequencies(IntEnum):
    """How the rate depends on the frequency of a feature."""

    ADF = 0  # per window: the rate of a row falls by the number of updates that used the row
    MADF = 1  # a fixed scale per weight


class Rates(NamedTuple):
    """The rate of each row, and the time up to which its decay is applied."""

    gamma: NDArray[np.float64]  # (rows,) ADF: the rate
    used: NDArray[np.int64]  # (rows,) ADF: number of updates in the window that used the row
    window: NDArray[np.int64]  # (rows,) ADF: the window that gamma and used refer to
    paid: NDArray[np.float64]  # (rows,) time up to which decay is applied, in units of `Clock.now`
    scale: Floats  # (rows * width,) MADF: B; ADF: empty


class AdaptivePlan(NamedTuple):
    """Values that are constant during a pass."""

    kind: int  # a `Frequencies` value
    decay: float  # l2 / N
    window: int  # q, in updates
    alpha: float
    beta: float
    batch: int
    sentences: int  # per pass
    layout: Layout


class Clock(NamedTuple):
    """The time before an update."""

    now: float  # ADF: number of sentences seen; MADF: sum of eta over them
    updates: int  # ADF: number of updates made


class AdaptiveStep(NamedTuple):
    """One update."""

    size: int  # number of sentences
    rate: float  # MADF: eta
    after: float  # `Clock.now` after the update
    paired: bool  # whether `pairs` has a direction too


@inlined
def _seen(p: AdaptivePlan, updates: int) -> float:
    """Return the number of sentences seen in `updates` updates. The last batch of a pass may be smaller."""
    if p.batch == 1:
        return float(updates)
    each = (p.sentences + p.batch - 1) // p.batch
    passes = updates // each
    return float(passes * p.sentences + min((updates - passes * each) * p.batch, p.sentences))


@inlined
def _clock(p: AdaptivePlan, now: float) -> Clock:
    """Return the time `now` with the number of updates made; the inverse of `_seen`."""
    if p.kind == Frequencies.MADF:
        return Clock(now, 0)
    passes = int(now) // p.sentences
    rest = int(now) - passes * p.sentences
    each = (p.sentences + p.batch - 1) // p.batch
    return Clock(now, passes * each + (rest + p.batch - 1) // p.batch)


@inlined
def _missed_rates(g: Rates, row: Any, clock: Clock, p: AdaptivePlan) -> float:
    """ADF: update the row's rate to the current window; return the sum of the rates it missed, one per sentence."""
    total, paid = 0.0, g.paid[row]
    while (g.window[row] + 1) * p.window <= clock.updates:
        end = _seen(p, (g.window[row] + 1) * p.window)
        total += g.gamma[row] * (end - paid)
        paid = end
        g.gamma[row] *= p.alpha - (g.used[row] / p.window) * (p.alpha - p.beta)
        g.used[row] = 0
        g.window[row] += 1
    return float(total + g.gamma[row] * (clock.now - paid))


@inlined
def _decay_row(r: Rows, g: Rates, row: Any, amount: float, p: AdaptivePlan, out: Floats) -> None:
    """out = exp(-decay * amount) times the row; for MADF, the exponent also has the B of each weight."""
    kind, width = r.weights.dtype.type, p.layout.width
    flat = v.splat(kind(exp(-p.decay * amount)))
    each = v.splat(kind(-p.decay * amount))
    for j in range(0, width, v.LANES):
        k = row * width + j
        factor = v.exp(v.multiply(each, v.load(g.scale, k))) if p.kind == Frequencies.MADF else flat
        v.store(out, k, v.multiply(factor, v.load(r.weights, k)))


@inlined
def _catch_up(r: Rows, g: Rates, row: Any, clock: Clock, p: AdaptivePlan) -> None:
    """Apply the decay that a row missed."""
    amount = _missed_rates(g, row, clock, p) if p.kind == Frequencies.ADF else clock.now - g.paid[row]
    if amount > 0.0:
        _decay_row(r, g, row, amount, p, r.weights)
        g.paid[row] = clock.now


@inner
def _catch_up_sentence(
    data: Sequences, sentence: int, r: Rows, g: Rates, clock: Clock, p: AdaptivePlan
) -> None:
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for k in range(data.starts[begin], data.starts[end]):
        _catch_up(r, g, np.int64(data.rows[k]), clock, p)
    if data.rich:
        for k in range(data.edge_starts[begin], data.edge_starts[end]):
            row = edge_row(data, k, p.layout)
            for y in range(p.layout.labels):
                _catch_up(r, g, row + y, clock, p)


@inlined
def _begin_step(r: Rows, g: Rates, row: Any, step: AdaptiveStep, p: AdaptivePlan) -> None:
    """Apply the decay of this update, once per row."""
    if g.paid[row] != step.after:
        rate = g.gamma[row] if p.kind == Frequencies.ADF else step.rate
        _decay_row(r, g, row, rate * step.size, p, r.weights)
        g.paid[row] = step.after
        g.used[row] += 1


@inlined
def _step_row(
    r: Rows,
    g: Rates,
    row: Any,
    factor: tuple[float, float],
    steps: Floats,
    at: int,
    p: AdaptivePlan,
    lanes: Any,
) -> None:
    """row[:lanes] += rate_i * value * step; `factor` is (value, rate)."""
    width, (value, rate) = p.layout.width, factor
    if p.kind == Frequencies.ADF:
        add_to_row(r, row, g.gamma[row] * value, steps, at, width, lanes)
        return
    kind = r.weights.dtype.type
    value_v = v.splat(kind(rate * value))
    for j in range(0, lanes, v.LANES):
        k = row * width + j
        step = existing(r, k, v.load(steps, at + j))
        v.store(r.weights, k, v.fma(v.multiply(value_v, v.load(g.scale, k)), step, v.load(r.weights, k)))


@inner
def _step_blocks(
    data: Sequences, token: int, at: int, step: AdaptiveStep, r: Rows, g: Rates, c: Chain, p: AdaptivePlan
) -> None:
    """Add to the blocks of a token's edge attributes, from its matrix at `at`."""
    for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
        row = edge_row(data, k, p.layout)
        for y in range(p.layout.labels):
            _begin_step(r, g, row + y, step, p)
            _step_row(r, g, row + y, (1.0, step.rate), c.matrices, at + y * p.layout.width, p, p.layout.width)


@inner
def _update_arcs(
    data: Sequences, sentence: int, at: Any, step: AdaptiveStep, r: Rows, g: Rates, c: Chain, p: AdaptivePlan
) -> int:
    """Take one step for the arcs of a sentence, of which most have none for relations; return their number."""
    keep_apart()
    begin, end = data.offsets[sentence], data.offsets[sentence + 1]
    for token in range(begin, end):
        lanes, first = lanes_of(data, token, p.layout), (at + token - begin) * p.layout.width
        for k in range(data.starts[token], data.starts[token + 1]):
            row = np.int64(data.rows[k])
            _begin_step(r, g, row, step, p)
            _step_row(r, g, row, (float(value_of(data, k)), step.rate), c.beta, first, p, lanes)
    return int(end - begin)


@inner
def _update(
    data: Sequences, s: Sample, step: AdaptiveStep, r: Rows, g: Rates, c: Chain, p: AdaptivePlan
) -> None:
    """Take one step along the direction in `beta`, `matrices` and `pairs`."""
    labels, width = p.layout.labels, p.layout.width
    at = ZERO
    for i in range(s.first, s.last):
        if data.trees.present:
            at += _update_arcs(data, s.order[i], at, step, r, g, c, p)
            continue
        for token in range(data.offsets[s.order[i]], data.offsets[s.order[i] + 1]):
            for k in range(data.starts[token], data.starts[token + 1]):
                row = np.int64(data.rows[k])
                _begin_step(r, g, row, step, p)
                _step_row(r, g, row, (float(value_of(data, k)), step.rate), c.beta, at * width, p, width)
            if c.rich:
                _step_blocks(data, token, at * labels * width, step, r, g, c, p)
            at += 1
    if step.paired:
        for y in range(labels):
            _begin_step(r, g, p.layout.attributes + y, step, p)
            _step_row(r, g, p.layout.attributes + y, (1.0, step.rate), c.pairs, y * width, p, width)


@kernel
def run_adaptive(
    d: PassData,
    first: int,
    last: int,
    p: AdaptivePlan,
    r: Rows,
    g: Rates,
    now: NDArray[np.float64],
    b: Buffers,
) -> float:
    """Run updates `first` to `last` of a pass; return their total loss. now[0] is `Clock.now`."""
    loss, data = 0.0, d.data
    denormals = v.flush_denormals()
    for i in range(first, last, p.batch):
        s = Sample(d.order, i, min(i + p.batch, last))
        clock, size = _clock(p, now[0]), s.last - i
        for k in range(i, s.last):
            _catch_up_sentence(data, d.order[k], r, g, clock, p)
        for y in range(p.layout.labels):
            _catch_up(r, g, p.layout.attributes + y, clock, p)
        m = Scorer(r, PLAIN, load_edges(r, PLAIN, p.layout, b.edges), p.layout)
        met, paired = batch_direction(data, s, m, b)
        after = clock.now + (float(size) if p.kind == Frequencies.ADF else d.rates[i] * size)
        _update(data, s, AdaptiveStep(size, d.rates[i], after, paired), r, g, b.chain, p)
        now[0] = after
        loss += met
    v.restore_denormals(denormals)
    return loss


@kernel
def settle_adaptive(r: Rows, g: Rates, now: float, p: AdaptivePlan, out: Floats) -> None:
    """Write every row to `out` with all decay applied. This keeps the weights but changes the rates: pass a copy."""
    clock = _clock(p, now)
    for row in range(g.paid.shape[0]):
        amount = _missed_rates(g, row, clock, p) if p.kind == Frequencies.ADF else now - g.paid[row]
        _decay_row(r, g, row, amount, p, out)
