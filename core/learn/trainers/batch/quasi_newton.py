"""Limited-memory quasi-Newton: one two-loop recursion for L-BFGS and OWL-QN.

    F(w) = L(w) + l1 |w|_1 + (l2 / 2) |w|^2

With l1 = 0 this is L-BFGS (Nocedal 1980) with a bisection search for the weak Wolfe conditions. With l1 > 0 it is
OWL-QN (Andrew & Gao 2007): the direction uses the pseudo-gradient, and each trial point is projected onto the orthant
chosen at the start of the search. Only the smooth part enters the curvature pairs.

The published OWL-QN sets the direction to zero where it does not oppose the pseudo-gradient. F then falls fast at
first. Near the end, this rule discards a third of the Newton step, so the unit step fails and F falls slowly. From that
point on, we take the Newton step over all free parameters: those that are not zero, and those whose gradient exceeds l1
(decision 0007 has the measurements). In both cases F falls at every iteration.

The second derivatives of the parameters differ by orders of magnitude: large for frequent words, small for rare ones.
The few stored steps cannot represent such differences. So each parameter is scaled by its own unit, from the diagonal
of the Hessian (`Objective.units`). The curvature of F is then more equal along all parameters. The square root would
make it exactly equal if each feature fired alone. But features fire together, and the cube root works better.
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.batch.vectors import History, Restriction, Slope, Vector, Vectors

#: Maximum trials per line search. Bisection from a step of 1 stops making progress well before that.
MAX_TRIALS = 30
#: Constants of the sufficient decrease condition and, for L-BFGS, the curvature condition.
ARMIJO, WOLFE = 1e-4, 0.9
#: A pair is used if step . change exceeds this fraction of |change|^2.
CURVATURE = 1e-12
#: The stop rule uses the change of F over this many iterations (Andrew & Gao's rule).
PERIOD = 10
#: Stop when the gradient norm is below this fraction of the weight norm.
GRADIENT_TOLERANCE = 1e-6
#: Added to the curvature along each parameter, so that a step stays bounded where the curvature is zero.
LEAST_BEND = 1.0


@dataclass
class Point:
    """Weights with their objective F and the gradient of its smooth part."""

    w: Vector
    objective: float
    gradient: Vector


class Memory:
    """The last steps and gradient changes, as plain arrays of a state.

    The two-loop recursion only adds multiples of the stored vectors to the gradient. So it runs on the coefficients,
    with precomputed dot products of all vectors (Chen, Wang & Zhou 2014). This needs one sweep over the memory for the
    products and one for the sum, instead of four.

    Directions are computed with each parameter scaled by its unit. The memory is stored unscaled, so the units can
    change.
    """

    def __init__(
        self, steps: Vector, changes: Vector, counts: NDArray[np.int64], units: Vector, vectors: Vectors
    ) -> None:
        self._steps, self._changes = steps, changes  # (memory, parameters) each
        self._counts = counts  # [number of pairs ever stored]
        self.units = units
        self._vectors = vectors

    @property
    def stored(self) -> int:
        """The number of pairs stored so far."""
        return int(self._counts[0])

    def add(self, old: Point, new: Point) -> None:
        """Store the pair between two points, unless its curvature is not safely positive."""
        along, square = self._vectors.curvature(new.w, old.w, new.gradient, old.gradient)
        if along <= CURVATURE * square:
            return
        at = self.stored % len(self._steps)
        self._vectors.scaled_sum(new.w, -1.0, old.w, self._steps[at])
        self._vectors.scaled_sum(new.gradient, -1.0, old.gradient, self._changes[at])
        self._counts[0] += 1

    def direction(self, steepest: Vector, allowed: Restriction) -> tuple[Vector, float]:
        """Return minus the inverse Hessian estimate times the gradient, restricted to `allowed`, and its slope."""
        size, ever = len(self._steps), self.stored
        count = min(ever, size)
        history = History(self._steps.reshape(-1), self._changes.reshape(-1), count, self._vectors.size)
        slope = Slope(steepest, self.units, int(allowed))
        products = self._vectors.gram(history, slope)
        factors, scale = _two_loops(products, [(ever - 1 - i) % size for i in range(count)])
        return self._vectors.combination(history, slope, -factors, -scale)


def _two_loops(products: Vector, newest_first: list[int]) -> tuple[Vector, float]:
    """Run Nocedal's recursion on the coefficients of the steps and changes, and on that of the gradient.

    `products` holds the dot products of the steps, the changes and the gradient, in this order. Pairs without curvature
    are skipped.
    """
    count = len(newest_first)
    used = [i for i in newest_first if products[i, count + i] > CURVATURE * products[count + i, count + i]]
    factors = np.zeros(2 * count + 1)
    factors[-1] = 1.0
    alphas = {}
    for i in used:
        alphas[i] = float(products[i] @ factors) / products[i, count + i]
        factors[count + i] -= alphas[i]
    if used:
        newest = used[0]
        factors *= products[newest, count + newest] / products[count + newest, count + newest]
    for i in reversed(used):
        factors[i] += alphas[i] - float(products[count + i] @ factors) / products[i, count + i]
    return factors[:-1], float(factors[-1])


@dataclass(frozen=True)
class Objective:
    """F over a batch."""

    batch: Batch
    l1: float
    l2: float

    @property
    def vectors(self) -> Vectors:
        return self.batch.vectors

    def at(self, w: Vector) -> Generator[None, None, Point]:
        """Evaluate F at `w`."""
        loss, gradient = yield from self.batch.evaluate(w)
        norm1, norm2 = self.vectors.norms(w)
        if self.l2 > 0.0:
            self.vectors.scaled_sum(gradient, self.l2, w, gradient)
        return Point(w, loss + self.l1 * norm1 + 0.5 * self.l2 * norm2, gradient)

    def units(self) -> Generator[None, None, Vector]:
        """Return units of the parameters that make the curvature of F more equal, at the last evaluated point."""
        bends = yield from self.batch.bends()
        bends += self.l2 + LEAST_BEND
        units: Vector = 1.0 / np.cbrt(bends)
        return units

    def steepest(self, point: Point) -> Vector:
        """Return the gradient, or for L1 the pseudo-gradient."""
        if self.l1 == 0.0:
            return point.gradient
        return self.vectors.pseudo_gradient(point.w, point.gradient, self.l1)


def step(
    objective: Objective, memory: Memory, point: Point, steepest: Vector, allowed: Restriction
) -> Generator[None, None, Point | None]:
    """Run one iteration; return the next point, or None if no step lowers F."""
    direction, slope = memory.direction(steepest, allowed)
    if not slope < 0.0:
        direction, slope = -steepest, -objective.vectors.dot(steepest, steepest)
    if slope == 0.0:
        return None
    first = 1.0 if memory.stored else float(1.0 / np.sqrt(-slope))
    if objective.l1 > 0.0:
        found = yield from _orthant_search(objective, point, steepest, direction, first)
    else:
        found = yield from _wolfe_search(objective, point, direction, slope, first)
    if found is not None:
        memory.add(point, found)
    return found


def _wolfe_search(
    objective: Objective, point: Point, direction: Vector, slope: float, first: float
) -> Generator[None, None, Point | None]:
    """Bisect for a step with sufficient decrease and curvature; if trials run out, return the best decrease found."""
    low, high, length = 0.0, np.inf, first
    best: Point | None = None
    for _ in range(MAX_TRIALS):
        trial = yield from objective.at(objective.vectors.scaled_sum(point.w, length, direction))
        if not trial.objective <= point.objective + ARMIJO * length * slope:
            high = length
        else:
            if best is None or trial.objective < best.objective:
                best = trial
            if objective.vectors.dot(trial.gradient, direction) >= WOLFE * slope:
                return trial
            low = length
        length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        if high - low <= 1e-12 * max(high, 1e-12) and not np.isinf(high):
            break
    return best


def _orthant_search(
    objective: Objective, point: Point, steepest: Vector, direction: Vector, first: float
) -> Generator[None, None, Point | None]:
    """Halve the step until F falls enough, on the orthant of the point (at zero: the one towards which F falls)."""
    length = first
    for _ in range(MAX_TRIALS):
        w, gain = objective.vectors.projected_sum(point.w, length, direction, steepest)
        trial = yield from objective.at(w)
        if trial.objective <= point.objective + ARMIJO * gain:
            return trial
        length *= 0.5
    return None
