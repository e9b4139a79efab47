"""Weights as rows of labels an attribute, and the kernels that read and write them.

The rows of all attributes come first, then one row a label for the transitions out of it, then such a block of rows for
each edge attribute, all of `width` labels, in one array. What is stored is not always what is meant: penalties are paid
lazily. A row is read as

    scale * soft(row, base + sign * touched[row])

so that one kernel serves every lazy penalty (see `updates`); plain weights are read with base, sign = 0 and scale = 1.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats, set_edges
from core.jit import inlined, inner, kernel
from core.learn.problem import Sequences


class Rows(NamedTuple):
    """Weights, the debt of each row, and which weights exist."""

    weights: Floats  # (rows * width,)
    touched: Floats  # (rows,)
    mask: NDArray[np.uint8]  # (rows * width / 8,) a bit a weight that may change, or empty: all may


class Reading(NamedTuple):
    """How rows are read."""

    base: float
    sign: float
    scale: float


PLAIN = Reading(0.0, 0.0, 1.0)
#: Numbers of float32 in a line of the cache.
_LINE = 16
EVERYTHING = np.empty(0, np.uint8)
EVERYTHING.flags.writeable = False


def rows(count: int, width: int, dtype: Any, mask: NDArray[np.uint8] = EVERYTHING) -> Rows:
    """All-zero weights."""
    return Rows(v.zeros(count * width, dtype), v.zeros(count, dtype), mask)


@inlined
def value_of(data: Sequences, k: Any) -> Any:
    """The value of attribute k."""
    return data.values[k] if data.values.shape[0] > 0 else np.float32(1)


@inlined
def _owed(r: Rows, row: Any, reading: Reading) -> Any:
    """What a row owes. Plain rows owe nothing, and are not asked: reading `touched` costs a line of the cache."""
    if reading.sign == 0.0:
        return v.zero(r.weights)
    kind = r.weights.dtype.type
    return v.splat(kind(kind(reading.base) + kind(reading.sign) * r.touched[row]))


@inlined
def _weighed(r: Rows, at: Any, owed: Any, value: Any, acc: Any) -> Any:
    """acc + value * what is left of eight weights."""
    return v.fma(v.soft(v.load(r.weights, at), owed), value, acc)


@inlined
def gather(data: Sequences, token: Any, r: Rows, reading: Reading, width: int, out: Floats, at: Any) -> None:
    """out[at:at+width] = sum of the token's rows as read, each times its value.

    Three vectors at a time: a row of up to 24 labels is visited once, with its debt read once.
    """
    first, last = data.starts[token], data.starts[token + 1]
    kind = r.weights.dtype.type
    scale = v.splat(kind(reading.scale))
    j = 0
    while width - j >= 3 * v.LANES:
        a, b, c = v.zero(out), v.zero(out), v.zero(out)
        for k in range(first, last):
            row = np.int64(data.rows[k])
            owed, value = _owed(r, row, reading), v.splat(kind(value_of(data, k)))
            place = row * width + j
            a = _weighed(r, place, owed, value, a)
            b = _weighed(r, place + v.LANES, owed, value, b)
            c = _weighed(r, place + 2 * v.LANES, owed, value, c)
        v.store(out, at + j, v.multiply(a, scale))
        v.store(out, at + j + v.LANES, v.multiply(b, scale))
        v.store(out, at + j + 2 * v.LANES, v.multiply(c, scale))
        j += 3 * v.LANES
    while j < width:
        a = v.zero(out)
        for k in range(first, last):
            row = np.int64(data.rows[k])
            value = v.splat(kind(value_of(data, k)))
            a = _weighed(r, row * width + j, _owed(r, row, reading), value, a)
        v.store(out, at + j, v.multiply(a, scale))
        j += v.LANES


@inlined
def prefetch(data: Sequences, token: int, r: Rows, reading: Reading, width: int) -> None:
    """Ask for the rows of a token that will be read soon."""
    if token + 1 < data.starts.shape[0]:
        for k in range(data.starts[token], data.starts[token + 1]):
            at = np.int64(data.rows[k]) * width
            v.prefetch(r.weights, at)
            v.prefetch(r.weights, at + width - 1)
            if r.mask.shape[0] > 0:
                v.prefetch(r.mask, at // v.LANES)
            if reading.sign != 0.0:
                v.prefetch(r.touched, np.int64(data.rows[k]))


@inlined
def edge_row(data: Sequences, k: Any, blocks: int, labels: int) -> Any:
    """The first row of the block of edge attribute k of the corpus; `blocks` is where they begin."""
    return blocks + np.int64(data.edge_rows[k]) * labels


@inlined
def gather_edges(
    data: Sequences, token: Any, r: Rows, reading: Reading, blocks: int, labels: int, width: int, common: Floats,
    out: Floats, at: Any,
) -> None:  # fmt: skip
    """out[at:] = the common transitions and the blocks of the token's edge attributes as read, added up."""
    first, last = data.edge_starts[token], data.edge_starts[token + 1]
    scale = v.splat(r.weights.dtype.type(reading.scale))
    for i in range(labels):
        for j in range(0, width, v.LANES):
            acc = v.zero(out)
            for k in range(first, last):
                row = edge_row(data, k, blocks, labels) + i
                acc = v.add(acc, v.soft(v.load(r.weights, row * width + j), _owed(r, row, reading)))
            place = i * width + j
            v.store(out, at + place, v.fma(acc, scale, v.load(common, place)))


@inlined
def prefetch_edges(
    data: Sequences, token: int, r: Rows, reading: Reading, blocks: int, labels: int, width: int
) -> None:
    """Ask for the blocks of a token that will be read soon."""
    if token + 1 < data.edge_starts.shape[0]:
        for k in range(data.edge_starts[token], data.edge_starts[token + 1]):
            row = edge_row(data, k, blocks, labels)
            for at in range(row * width, (row + labels) * width, _LINE):
                v.prefetch(r.weights, at)
            if reading.sign != 0.0:
                v.prefetch(r.touched, row)
                v.prefetch(r.touched, row + labels - 1)


@inlined
def read_row(r: Rows, row: Any, reading: Reading, width: int, out: Floats, at: Any) -> None:
    """out[at:at+width] = the row as read."""
    owed, scale = _owed(r, row, reading), v.splat(r.weights.dtype.type(reading.scale))
    for j in range(0, width, v.LANES):
        v.store(out, at + j, v.multiply(v.soft(v.load(r.weights, row * width + j), owed), scale))


@kernel
def read_edges(r: Rows, attributes: int, labels: int, reading: Reading, width: int, e: Edges) -> None:
    """Read the scores of the transitions."""
    for i in range(labels):
        read_row(r, attributes + i, reading, width, e.scores, i * width)


@kernel
def load_edges(r: Rows, attributes: int, labels: int, reading: Reading, width: int, e: Edges) -> float:
    """Read the transitions and exponentiate them; returns the shift of `set_edges`."""
    read_edges(r, attributes, labels, reading, width, e)
    return set_edges(labels, width, e)


@inlined
def settle_row(r: Rows, row: Any, owed: Any, width: int) -> None:
    """Pay what the row owes."""
    owed_v = v.splat(r.weights.dtype.type(owed))
    for j in range(0, width, v.LANES):
        v.store(r.weights, row * width + j, v.soft(v.load(r.weights, row * width + j), owed_v))


@inlined
def existing(r: Rows, at: Any, step: Any) -> Any:
    """The lanes of a step that have a weight, of the eight from `at` on; zero in the others."""
    if r.mask.shape[0] > 0:
        step = v.kept(r.mask[at // v.LANES], step)
    return step


@inlined
def add_to_row(r: Rows, row: Any, value: Any, step: Floats, at: Any, width: int) -> None:
    """row += value * step, where weights exist."""
    value_v = v.splat(r.weights.dtype.type(value))
    for j in range(0, width, v.LANES):
        k = row * width + j
        v.store(r.weights, k, v.fma(value_v, existing(r, k, v.load(step, at + j)), v.load(r.weights, k)))


@kernel
def settle(r: Rows, reading: Reading, labels: int, width: int, out: Floats) -> None:
    """Every row as read, into `out`; padding zero."""
    for row in range(r.touched.shape[0]):
        read_row(r, row, reading, width, out, row * width)
        for j in range(labels, width):
            out[row * width + j] = 0


@kernel
def census(weights: Floats) -> tuple[int, float, float]:
    """Count the weights that are not zero, and sum their magnitudes and their squares."""
    active, norm1, norm2 = 0, 0.0, 0.0
    for i in range(weights.shape[0]):
        w = float(weights[i])
        if w != 0.0:
            active += 1
            norm1 += abs(w)
            norm2 += w * w
    return active, norm1, norm2


@inner
def subtract_gold(c: Chain, at: Any, gold: NDArray[np.int32], begin: int, n: int, width: int) -> None:
    """Turn the marginals in `beta` into the direction of ascent: gold - marginal; and those in `matrices`, if any."""
    kind = c.beta.dtype.type
    minus = v.splat(kind(-1))
    for t in range(n):
        row = (at + t) * width
        for j in range(0, width, v.LANES):
            v.store(c.beta, row + j, v.multiply(v.load(c.beta, row + j), minus))
        c.beta[row + gold[begin + t]] += kind(1)
    if c.matrices.shape[0] > 0:
        size = c.pairs.shape[0]
        for t in range(1, n):
            first = (at + t) * size
            for k in range(first, first + size, v.LANES):
                v.store(c.matrices, k, v.multiply(v.load(c.matrices, k), minus))
            c.matrices[first + gold[begin + t - 1] * width + gold[begin + t]] += kind(1)
