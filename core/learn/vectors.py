"""The long vectors of quasi-Newton: sums and updates in one sweep each, without temporaries, on all threads.

A sweep is cut into pieces of fixed size, each with sums of its own, which are added in the order of the pieces: the
result is the same, bit for bit, for any number of threads. (numpy's dot product is not: its library cuts the work by
the cores it finds.)
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.inference import vector as v
from core.jit import fast_kernel, inlined, kernel
from core.learn.pieces import Pool

Vector = NDArray[np.float64]

#: Elements of one piece: enough work for the hand-over between threads not to matter.
PIECE = 1 << 15
#: Elements worked on together while they are in the first-level cache.
_BLOCK = 1024


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


@kernel
def _products(
    steps: Vector, changes: Vector, newest: int, count: int, size: int, g: Vector, first: int, last: int, sums: Vector
) -> None:  # fmt: skip
    """Products of the newest step, the newest change and g with each step and each change; `steps` and `changes` flat.

    sums[q * 2 count + i]: of query q with step i; count further on, with change i.
    """
    sums[:] = 0
    for begin in range(first, last, _BLOCK):
        n = min(_BLOCK, last - begin)
        new = newest * size + begin
        for i in range(count):
            at = i * size + begin
            sums[i] += _dot(steps, at, steps, new, n)
            sums[2 * count + i] += _dot(steps, at, changes, new, n)
            sums[4 * count + i] += _dot(steps, at, g, begin, n)
            sums[count + i] += _dot(changes, at, steps, new, n)
            sums[3 * count + i] += _dot(changes, at, changes, new, n)
            sums[5 * count + i] += _dot(changes, at, g, begin, n)


@kernel
def _combination(
    steps: Vector, changes: Vector, factors: Vector, count: int, size: int, g: Vector, scale: float, clip: bool,
    first: int, last: int, out: Vector, sums: Vector,
) -> None:  # fmt: skip
    """out = scale g + factors . (steps, changes), with `clip` zero where it does not go against g; sums out . g."""
    sums[0] = 0
    for begin in range(first, last, _BLOCK):
        n = min(_BLOCK, last - begin)
        for k in range(begin, begin + n):
            out[k] = scale * g[k]
        for i in range(count):
            _add(out, begin, factors[i], steps, i * size + begin, n)
            _add(out, begin, factors[count + i], changes, i * size + begin, n)
        if clip:
            for k in range(begin, begin + n):
                if out[k] * g[k] >= 0.0:
                    out[k] = 0.0
        sums[0] += _dot(out, begin, g, begin, n)


class Vectors:
    """Operations on vectors of one size."""

    def __init__(self, size: int, pool: Pool) -> None:
        self.size = size
        self._pool = pool
        self._pieces = [(first, min(first + PIECE, size)) for first in range(0, size, PIECE)]

    def _sweep(self, sums: int, run: Callable[[int, int, Vector], None]) -> list[float]:
        """Run over all pieces, each with as many sums as asked for; their totals."""
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
        """w + length * d on the orthant of w (at zero: the one F falls into), and the change along `steepest`."""
        out = np.empty(self.size)
        (gain,) = self._sweep(
            1, lambda first, last, sums: _projected_sum(w, length, d, steepest, first, last, out, sums)
        )
        return out, gain

    def pseudo_gradient(self, w: Vector, g: Vector, l1: float) -> Vector:
        """At zero the derivative towards the side where F falls, or nothing if there is none."""
        out = np.empty(self.size)
        self._sweep(0, lambda first, last, _: _pseudo_gradient(w, g, l1, first, last, out))
        return out

    def curvature(self, w: Vector, w0: Vector, g: Vector, g0: Vector) -> tuple[float, float]:
        """(w - w0) . (g - g0) and |g - g0|^2"""
        along, square = self._sweep(2, lambda first, last, sums: _curvature(w, w0, g, g0, first, last, sums))
        return along, square

    def products(self, steps: Vector, changes: Vector, newest: int, count: int, g: Vector) -> Vector:
        """(3, 2 count): products of the newest step, the newest change and g with the steps and the changes."""
        flat_steps, flat_changes = steps.reshape(-1), changes.reshape(-1)
        sums = self._sweep(
            6 * count,
            lambda first, last, sums: _products(
                flat_steps, flat_changes, newest, count, self.size, g, first, last, sums
            ),
        )
        return np.array(sums).reshape(3, 2 * count)

    def combination(
        self, steps: Vector, changes: Vector, factors: Vector, g: Vector, scale: float, *, clip: bool
    ) -> tuple[Vector, float]:
        """scale g + factors . (steps, changes), with `clip` zero where that does not go against g; and its slope."""
        flat_steps, flat_changes, out = steps.reshape(-1), changes.reshape(-1), np.empty(self.size)
        (slope,) = self._sweep(
            1,
            lambda first, last, sums: _combination(
                flat_steps, flat_changes, factors, len(factors) // 2, self.size, g, scale, clip, first, last, out,
                sums,
            ),
        )  # fmt: skip
        return out, slope
