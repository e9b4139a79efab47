"""Weights as rows of labels, in one array in the order of `Layout`, and the kernels that read and write them.

Penalties are applied lazily, so a stored row may differ from its actual weights. A row is read as

    scale * soft(row, base + sign * touched[row])

so that one kernel serves every lazy penalty (see `sgd.updates`). Plain weights have base = sign = 0 and scale = 1.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.inference.chain import Edges, Floats, set_edges
from tagsmith.core.learn.problem.layout import Layout
from tagsmith.core.learn.problem.problem import Sequences


class Rows(NamedTuple):
    """Weights, the pending penalty of each row, and which weights exist."""

    weights: Floats  # (rows * width,)
    touched: Floats  # (rows,)
    mask: NDArray[np.uint8]  # (rows * width / 8,) one bit per trainable weight; empty unless `masked`
    masked: bool  # whether only some weights are trainable


class Reading(NamedTuple):
    """How stored rows are converted to weights."""

    base: float
    sign: float
    scale: float


class Scorer(NamedTuple):
    """The inputs that a kernel needs to score sequences."""

    rows: Rows
    reading: Reading
    shift: float  # shift of the transitions (see `set_edges`)
    layout: Layout


PLAIN = Reading(0.0, 0.0, 1.0)
#: float32 numbers per cache line.
_LINE = 16
EVERYTHING = np.empty(0, np.uint8)
EVERYTHING.flags.writeable = False


def rows(count: int, width: int, dtype: Any, mask: NDArray[np.uint8] = EVERYTHING) -> Rows:
    """Create all-zero weights."""
    return rows_of(v.zeros(count * width, dtype), v.zeros(count, dtype), mask)


def rows_of(weights: Floats, touched: Floats, mask: NDArray[np.uint8] = EVERYTHING) -> Rows:
    """Wrap given weights; all are trainable unless there is a mask."""
    return Rows(weights, touched, mask, len(mask) > 0)


@inlined
def value_of(data: Sequences, k: Any) -> Any:
    """Return the value of attribute k."""
    return data.values[k] if data.valued else np.float32(1)


@inlined
def _pending_penalty(r: Rows, row: Any, reading: Reading) -> Any:
    """Return the pending penalty of a row. Plain rows have none; skipping `touched` then saves a cache line."""
    if reading.sign == 0.0:
        return v.zero(r.weights)
    kind = r.weights.dtype.type
    return v.splat(kind(kind(reading.base) + kind(reading.sign) * r.touched[row]))


@inlined
def _add_weighted(r: Rows, at: Any, pending: Any, value: Any, acc: Any) -> Any:
    """Return acc + value * soft(eight weights, pending)."""
    return v.fma(v.soft(v.load(r.weights, at), pending), value, acc)


@inlined
def gather(data: Sequences, token: Any, m: Scorer, lanes: Any, out: Floats, at: Any) -> None:
    """out[at:at+lanes] = sum of the token's rows as read, each times its value. `lanes` is a multiple of a vector.

    Processes three vectors at a time: a row of up to 24 labels is visited once, and its pending penalty is read once.
    """
    r, reading, width = m.rows, m.reading, m.layout.width
    first, last = data.starts[token], data.starts[token + 1]
    kind = r.weights.dtype.type
    scale = v.splat(kind(reading.scale))
    j = 0
    while lanes - j >= 3 * v.LANES:
        a, b, c = v.zero(out), v.zero(out), v.zero(out)
        for k in range(first, last):
            row = np.int64(data.rows[k])
            pending, value = _pending_penalty(r, row, reading), v.splat(kind(value_of(data, k)))
            cell = row * width + j
            a = _add_weighted(r, cell, pending, value, a)
            b = _add_weighted(r, cell + v.LANES, pending, value, b)
            c = _add_weighted(r, cell + 2 * v.LANES, pending, value, c)
        v.store(out, at + j, v.multiply(a, scale))
        v.store(out, at + j + v.LANES, v.multiply(b, scale))
        v.store(out, at + j + 2 * v.LANES, v.multiply(c, scale))
        j += 3 * v.LANES
    while j < lanes:
        a = v.zero(out)
        for k in range(first, last):
            row = np.int64(data.rows[k])
            value = v.splat(kind(value_of(data, k)))
            a = _add_weighted(r, row * width + j, _pending_penalty(r, row, reading), value, a)
        v.store(out, at + j, v.multiply(a, scale))
        j += v.LANES


@inlined
def prefetch(data: Sequences, token: int, m: Scorer, lanes: Any) -> None:
    """Prefetch the first `lanes` weights of the rows of a token that will be read soon."""
    r, reading, width = m.rows, m.reading, m.layout.width
    if token + 1 < data.starts.shape[0]:
        for k in range(data.starts[token], data.starts[token + 1]):
            at = np.int64(data.rows[k]) * width
            v.prefetch(r.weights, at)
            v.prefetch(r.weights, at + lanes - 1)
            if r.masked:
                v.prefetch(r.mask, at // v.LANES)
            if reading.sign != 0.0:
                v.prefetch(r.touched, np.int64(data.rows[k]))


@inlined
def edge_row(data: Sequences, k: Any, layout: Layout) -> Any:
    """Return the first row of the block of edge attribute k of the corpus."""
    return layout.blocks + np.int64(data.edge_rows[k]) * layout.labels


@inlined
def gather_edges(data: Sequences, token: Any, m: Scorer, common: Floats, out: Floats, at: Any) -> None:
    """out[at:] = the common transitions plus the blocks of the token's edge attributes, as read."""
    r, reading, labels, width = m.rows, m.reading, m.layout.labels, m.layout.width
    first, last = data.edge_starts[token], data.edge_starts[token + 1]
    scale = v.splat(r.weights.dtype.type(reading.scale))
    for i in range(labels):
        for j in range(0, width, v.LANES):
            acc = v.zero(out)
            for k in range(first, last):
                row = edge_row(data, k, m.layout) + i
                acc = v.add(
                    acc, v.soft(v.load(r.weights, row * width + j), _pending_penalty(r, row, reading))
                )
            cell = i * width + j
            v.store(out, at + cell, v.fma(acc, scale, v.load(common, cell)))


@inlined
def prefetch_edges(data: Sequences, token: int, m: Scorer) -> None:
    """Prefetch the blocks of a token that will be read soon."""
    r, reading, labels, width = m.rows, m.reading, m.layout.labels, m.layout.width
    if token + 1 < data.edge_starts.shape[0]:
        for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
            row = edge_row(data, k, m.layout)
            for at in range(row * width, (row + labels) * width, _LINE):
                v.prefetch(r.weights, at)
            if reading.sign != 0.0:
                v.prefetch(r.touched, row)
                v.prefetch(r.touched, row + labels - 1)


@inlined
def read_row(r: Rows, row: Any, reading: Reading, width: int, out: Floats, at: Any) -> None:
    """out[at:at+width] = the row as read."""
    pending, scale = _pending_penalty(r, row, reading), v.splat(r.weights.dtype.type(reading.scale))
    for j in range(0, width, v.LANES):
        v.store(out, at + j, v.multiply(v.soft(v.load(r.weights, row * width + j), pending), scale))


@kernel
def read_edges(r: Rows, reading: Reading, layout: Layout, e: Edges) -> None:
    """Read the scores of the transitions."""
    for i in range(layout.labels):
        read_row(r, layout.attributes + i, reading, layout.width, e.scores, i * layout.width)


@kernel
def load_edges(r: Rows, reading: Reading, layout: Layout, e: Edges) -> float:
    """Read the transitions and exponentiate them; return the shift of `set_edges`."""
    read_edges(r, reading, layout, e)
    return set_edges(layout.labels, layout.width, e)


@inlined
def settle_row(r: Rows, row: Any, pending: Any, width: int) -> None:
    """Subtract the pending penalty of the row."""
    pending_v = v.splat(r.weights.dtype.type(pending))
    for j in range(0, width, v.LANES):
        v.store(r.weights, row * width + j, v.soft(v.load(r.weights, row * width + j), pending_v))


@inlined
def existing(r: Rows, at: Any, step: Any) -> Any:
    """Return the step with zeros in the lanes whose weights do not exist, for the eight weights from `at` on."""
    if r.masked:
        step = v.kept(r.mask[at // v.LANES], step)
    return step


@inlined
def add_to_row(r: Rows, row: Any, value: Any, step: Floats, at: Any, width: int, lanes: Any) -> None:
    """row[:lanes] += value * step, where weights exist."""
    value_v = v.splat(r.weights.dtype.type(value))
    for j in range(0, lanes, v.LANES):
        k = row * width + j
        v.store(r.weights, k, v.fma(value_v, existing(r, k, v.load(step, at + j)), v.load(r.weights, k)))


@kernel
def settle(r: Rows, reading: Reading, layout: Layout, out: Floats) -> None:
    """Write every row to `out` as read; the padding is set to zero."""
    labels, width = layout.labels, layout.width
    for row in range(r.touched.shape[0]):
        read_row(r, row, reading, width, out, row * width)
        for j in range(labels, width):
            out[row * width + j] = 0


@kernel
def census(weights: Floats) -> tuple[int, float, float]:
    """Count the nonzero weights; sum their magnitudes and their squares."""
    active, norm1, norm2 = 0, 0.0, 0.0
    for i in range(weights.shape[0]):
        w = float(weights[i])
        if w != 0.0:
            active += 1
            norm1 += abs(w)
            norm2 += w * w
    return active, norm1, norm2
