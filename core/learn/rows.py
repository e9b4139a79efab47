"""Weights as rows of labels an attribute, and the kernels that read and write them.

The rows of all attributes come first, then one row a label for the transitions out of it, all of `width` labels, in
one array. A row may owe penalty: what is read is `soft(row, owed)`, with the debt given by `owed = base + sign *
touched[row]` so that one kernel serves every lazy penalty (see `sgd_l1`).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.inference import vector as v
from core.inference.chain import Chain, Edges, Floats, set_edges
from core.jit import inlined, kernel
from core.learn.problem import Sequences


class Rows(NamedTuple):
    """Weights with the debt of each row."""

    weights: Floats  # ((attributes + labels) * width,)
    touched: Floats  # (attributes + labels,)


def rows(attributes: int, labels: int, dtype: Any) -> Rows:
    """All-zero weights."""
    count = attributes + labels
    return Rows(v.zeros(count * v.padded(labels), dtype), v.zeros(count, dtype))


@inlined
def _owed(r: Rows, row: Any, base: float, sign: float) -> Any:
    kind = r.weights.dtype.type
    return v.splat(kind(kind(base) + kind(sign) * r.touched[row]))


@inlined
def _weighed(r: Rows, at: Any, owed: Any, value: Any, acc: Any) -> Any:
    """acc + value * what is left of eight weights."""
    return v.fma(v.soft(v.load(r.weights, at), owed), value, acc)


@inlined
def gather(
    data: Sequences, token: Any, r: Rows, base: float, sign: float, width: int, out: Floats, at: Any
) -> None:
    """out[at:at+width] = sum of the token's rows, each times its value, less what it owes.

    Three vectors at a time: a row of up to 24 labels is visited once, with its debt read once.
    """
    first, last = data.starts[token], data.starts[token + 1]
    kind = r.weights.dtype.type
    j = 0
    while width - j >= 3 * v.LANES:
        a, b, c = v.zero(out), v.zero(out), v.zero(out)
        for k in range(first, last):
            row = np.int64(data.rows[k])
            owed, value = _owed(r, row, base, sign), v.splat(kind(value_of(data, k)))
            place = row * width + j
            a = _weighed(r, place, owed, value, a)
            b = _weighed(r, place + v.LANES, owed, value, b)
            c = _weighed(r, place + 2 * v.LANES, owed, value, c)
        v.store(out, at + j, a)
        v.store(out, at + j + v.LANES, b)
        v.store(out, at + j + 2 * v.LANES, c)
        j += 3 * v.LANES
    while j < width:
        a = v.zero(out)
        for k in range(first, last):
            row = np.int64(data.rows[k])
            value = v.splat(kind(value_of(data, k)))
            a = _weighed(r, row * width + j, _owed(r, row, base, sign), value, a)
        v.store(out, at + j, a)
        j += v.LANES


@inlined
def value_of(data: Sequences, k: int) -> np.float32:
    """The value of attribute k."""
    return data.values[k] if data.values.shape[0] > 0 else np.float32(1)


@inlined
def prefetch(data: Sequences, token: int, r: Rows, width: int) -> None:
    """Ask for the rows of a token that will be read soon."""
    if token + 1 < data.starts.shape[0]:
        for k in range(data.starts[token], data.starts[token + 1]):
            at = np.int64(data.rows[k]) * width
            v.prefetch(r.weights, at)
            v.prefetch(r.weights, at + width - 1)
            v.prefetch(r.touched, np.int64(data.rows[k]))


@kernel
def load_edges(
    r: Rows, attributes: int, labels: int, base: float, sign: float, width: int, e: Edges
) -> float:
    """Read the transitions and exponentiate them; returns the shift of `set_edges`."""
    kind = r.weights.dtype.type
    for i in range(labels):
        owed = v.splat(kind(kind(base) + kind(sign) * r.touched[attributes + i]))
        for j in range(0, width, v.LANES):
            v.store(e.scores, i * width + j, v.soft(v.load(r.weights, (attributes + i) * width + j), owed))
    return set_edges(labels, width, e)


@inlined
def settle_row(r: Rows, row: Any, owed: Any, width: int) -> None:
    """Pay what the row owes."""
    owed_v = v.splat(r.weights.dtype.type(owed))
    for j in range(0, width, v.LANES):
        v.store(r.weights, row * width + j, v.soft(v.load(r.weights, row * width + j), owed_v))


@inlined
def add_to_row(r: Rows, row: Any, value: Any, step: Floats, at: int, width: int) -> None:
    """row += value * step."""
    value_v = v.splat(r.weights.dtype.type(value))
    for j in range(0, width, v.LANES):
        k = row * width + j
        v.store(r.weights, k, v.fma(value_v, v.load(step, at + j), v.load(r.weights, k)))


@kernel
def settle(r: Rows, base: float, sign: float, labels: int, width: int, out: Floats) -> None:
    """The weights with every debt paid, into `out`; padding zero."""
    kind = r.weights.dtype.type
    for row in range(r.touched.shape[0]):
        owed = v.splat(kind(kind(base) + kind(sign) * r.touched[row]))
        for j in range(0, width, v.LANES):
            v.store(out, row * width + j, v.soft(v.load(r.weights, row * width + j), owed))
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


@kernel
def subtract_gold(
    c: Chain, at: int, gold: NDArray[np.int32], begin: int, n: int, rate: float, width: int
) -> None:
    """Turn the marginals in `beta` into ascent steps: rate * (gold - marginal)."""
    kind = c.beta.dtype.type
    minus = v.splat(kind(-rate))
    for t in range(n):
        row = (at + t) * width
        for j in range(0, width, v.LANES):
            v.store(c.beta, row + j, v.multiply(v.load(c.beta, row + j), minus))
        c.beta[row + gold[begin + t]] += kind(rate)
