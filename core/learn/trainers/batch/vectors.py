"""Operations on the long vectors of quasi-Newton: one multi-threaded sweep each, without temporaries.

A sweep is split into pieces of fixed size. Each piece has its own sums, which are added in the order of the pieces. So
the result is the same, bit for bit, for any number of threads. (numpy's dot product is not: its library splits by
cores.)
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.jit import fast_kernel, inlined, kernel
from tagsmith.core.base.thread_pool import ThreadPool

Vector = NDArray[np.float64]


class Restriction(IntEnum):
    """Which part of a direction is taken."""

    ALL = 0
    ALIGNED = 1  # where it opposes the gradient
    FREE = 2  # where the gradient is not zero


#: Elements per piece: enough work to make the cost of thread synchronisation negligible.
PIECE = 1 << 15
#: Elements processed together while they are in the L1 cache.
_BLOCK = 256


@inlined
def _dot(a: Vector, at: Any, b: Vector, bt: Any, n: Any) -> Any:
    even, odd = v.zero(a), v.zero(a)
    whole = n - n % (2 * v.LANES)
    for k in range(0, whole, 2 * v.LANES):
        even = v.fma(v.load(a, at + k), v.load(b, bt + k), even)
        odd = v.fma(v.load(a, at + k + v.LANES), v.load(b, bt + k + v.LANES), odd)
    total = v.total(v.add(even, odd))
    for k in range(whole, n):
        total += a[at + k] * b[bt + k]
    return total


@inlined
def _add(out: Vector, at: Any, scale: Any, a: Vector, bt: Any, n: Any) -> None:
    """out += scale * a"""
    scale_v = v.splat(scale)
    whole = n - n % v.LANES
    for k in range(0, whole, v.LANES):
        v.store(out, at + k, v.fma(scale_v, v.load(a, bt + k), v.load(out, at + k)))
    for k in range(whole, n):
        out[at + k] += scale * a[bt + k]


@kernel
def _dots(a: Vector, b: Vector, first: int, last: int, sums: Vector) -> None:
    sums[0] = _dot(a, first, b, first, last - first)


@fast_kernel
def _norms(w: Vector, first: int, last: int, sums: Vector) -> None:
    norm1, norm2 = 0.0, 0.0
    for i in range(first, last):
        norm1 += abs(w[i])
        norm2 += w[i] * w[i]
    sums[0], sums[1] = norm1, norm2


@fast_kernel
def _scaled_sum(a: Vector, scale: float, b: Vector, first: int, last: int, out: Vector) -> None:
    for i in range(first, last):
        out[i] = a[i] + scale * b[i]


@fast_kernel
def _projected_sum(
    w: Vector, length: float, d: Vector, steepest: Vector, first: int, last: int, out: Vector, sums: Vector
) -> None:
    """out = w + length * d, zero where it leaves the orthant of w (at zero: -steepest); sums (out - w) . steepest."""
    gain = 0.0
    for i in range(first, last):
        side = w[i] if w[i] != 0.0 else -steepest[i]
        moved = w[i] + length * d[i]
        out[i] = moved if moved * side > 0.0 else 0.0
        gain += (out[i] - w[i]) * steepest[i]
    sums[0] = gain


@fast_kernel
def _pseudo_gradient(w: Vector, g: Vector, l1: float, first: int, last: int, out: Vector) -> None:
    for i in range(first, last):
        if w[i] != 0.0:
            out[i] = g[i] + l1 if w[i] > 0.0 else g[i] - l1
        else:
            out[i] = g[i] - l1 if g[i] > l1 else g[i] + l1 if g[i] < -l1 else 0.0


@fast_kernel
def _curvature(w: Vector, w0: Vector, g: Vector, g0: Vector, first: int, last: int, sums: Vector) -> None:
    along, square = 0.0, 0.0
    for i in range(first, last):
        change = g[i] - g0[i]
        along += (w[i] - w0[i]) * change
        square += change * change
    sums[0], sums[1] = along, square


class History(NamedTuple):
    """The stored steps and the gradient changes along them."""

    steps: Vector  # (memory * size,) the first `stored` rows are filled
    changes: Vector  # (memory * size,)
    stored: int
    size: int


class Slope(NamedTuple):
    """A gradient, the units of its parameters, and the part of a direction that may be taken."""

    g: Vector  # (size,)
    units: Vector  # (size,)
    allowed: int  # a `Restriction` value


@kernel
def _gram(h: History, s: Slope, first: int, last: int, block: Vector, sums: Vector) -> None:
    """Add the dot products of all steps, changes and g, scaled by the units; if FREE, only where g is not zero.

    `block` is scratch of 2 count + 1 rows. The result is in sums[i * (2 count + 1) + j] for j <= i.
    """
    steps, changes, count, size, g, units = h.steps, h.changes, h.stored, h.size, s.g, s.units
    vectors = 2 * count + 1
    for begin in range(first, last, _BLOCK):
        n = min(_BLOCK, last - begin)
        for i in range(count):
            for k in range(n):
                block[i * _BLOCK + k] = steps[i * size + begin + k] / units[begin + k]
                block[(count + i) * _BLOCK + k] = changes[i * size + begin + k] * units[begin + k]
        for k in range(n):
            block[2 * count * _BLOCK + k] = g[begin + k] * units[begin + k]
        if s.allowed == Restriction.FREE:
            for i in range(2 * count):
                for k in range(n):
                    if g[begin + k] == 0.0:
                        block[i * _BLOCK + k] = 0.0
        for i in range(vectors):
            for j in range(i + 1):
                sums[i * vectors + j] += _dot(block, i * _BLOCK, block, j * _BLOCK, n)


@kernel
def _combination(
    h: History, s: Slope, factors: Vector, scale: float, first: int, last: int, out: Vector, sums: Vector
) -> None:
    """out = scale g + factors . (steps, changes), scaled by the units; zero outside the allowed part; sums out . g."""
    steps, changes, count, size, g, units = h.steps, h.changes, h.stored, h.size, s.g, s.units
    sums[0] = 0
    for begin in range(first, last, _BLOCK):
        n = min(_BLOCK, last - begin)
        for k in range(begin, begin + n):
            out[k] = scale * g[k]
        for i in range(count):
            _add(out, begin, factors[count + i], changes, i * size + begin, n)
        for k in range(begin, begin + n):
            out[k] *= units[k] * units[k]
        for i in range(count):
            _add(out, begin, factors[i], steps, i * size + begin, n)
        if s.allowed != Restriction.ALL:
            for k in range(begin, begin + n):
                if g[k] == 0.0 or (s.allowed == Restriction.ALIGNED and out[k] * g[k] >= 0.0):
                    out[k] = 0.0
        sums[0] += _dot(out, begin, g, begin, n)


class Vectors:
    """Operations on vectors of one size."""

    def __init__(self, size: int, pool: ThreadPool) -> None:
        self.size = size
        self._pool = pool
        self._pieces = [(first, min(first + PIECE, size)) for first in range(0, size, PIECE)]

    def _sweep(self, sums: int, run: Callable[[int, int, Vector], None]) -> list[float]:
        """Run over all pieces, each with its own `sums` sums; return the totals."""
        parts = np.zeros((len(self._pieces), max(sums, 1)))
        self._pool.sweep(lambda piece, _: run(*self._pieces[piece], parts[piece]), len(self._pieces))
        totals: list[float] = np.add.reduce(parts, axis=0).tolist()
        return totals

    def dot(self, a: Vector, b: Vector) -> float:
        return self._sweep(1, lambda first, last, sums: _dots(a, b, first, last, sums))[0]

    def norms(self, w: Vector) -> tuple[float, float]:
        """|w|_1 and |w|^2."""
        norm1, norm2 = self._sweep(2, lambda first, last, sums: _norms(w, first, last, sums))
        return norm1, norm2

    def scaled_sum(self, a: Vector, scale: float, b: Vector, out: Vector | None = None) -> Vector:
        """a + scale * b"""
        into = np.empty(self.size) if out is None else out
        self._sweep(0, lambda first, last, _: _scaled_sum(a, scale, b, first, last, into))
        return into

    def projected_sum(self, w: Vector, length: float, d: Vector, steepest: Vector) -> tuple[Vector, float]:
        """w + length * d on the orthant of w (at zero: where F falls), and the change along `steepest`."""
        out = np.empty(self.size)
        (gain,) = self._sweep(
            1, lambda first, last, sums: _projected_sum(w, length, d, steepest, first, last, out, sums)
        )
        return out, gain

    def pseudo_gradient(self, w: Vector, g: Vector, l1: float) -> Vector:
        """The gradient of F. At zero: the derivative on the side where F falls, or 0 if there is none."""
        out = np.empty(self.size)
        self._sweep(0, lambda first, last, _: _pseudo_gradient(w, g, l1, first, last, out))
        return out

    def curvature(self, w: Vector, w0: Vector, g: Vector, g0: Vector) -> tuple[float, float]:
        """(w - w0) . (g - g0) and |g - g0|^2"""
        along, square = self._sweep(2, lambda first, last, sums: _curvature(w, w0, g, g0, first, last, sums))
        return along, square

    def gram(self, h: History, s: Slope) -> Vector:
        """Return the dot products of the steps, the changes and g; if FREE, only where g is not zero.

        All vectors are scaled by the units of the parameters: steps are divided by them, derivatives multiplied.
        """
        vectors = 2 * h.stored + 1
        blocks = np.empty((self._pool.threads, vectors * _BLOCK))
        parts = np.zeros((len(self._pieces), vectors * vectors))
        self._pool.sweep(
            lambda piece, thread: _gram(h, s, *self._pieces[piece], blocks[thread], parts[piece]),
            len(self._pieces),
        )
        lower: Vector = np.add.reduce(parts, axis=0).reshape(vectors, vectors)
        upper: Vector = np.tril(lower, -1).T
        return lower + upper

    def combination(self, h: History, s: Slope, factors: Vector, scale: float) -> tuple[Vector, float]:
        """Return the allowed part of scale g + factors . (steps, changes), and its slope.

        The sum is computed in units; the result is unscaled.
        """
        out = np.empty(self.size)
        (slope,) = self._sweep(
            1, lambda first, last, sums: _combination(h, s, factors, scale, first, last, out, sums)
        )
        return out, slope
