"""Limited-memory quasi-Newton: one two-loop recursion for L-BFGS and OWL-QN.

    F(w) = L(w) + l1 |w|_1 + (l2 / 2) |w|^2

With l1 = 0 this is L-BFGS (Nocedal 1980) with a bisection search for the weak Wolfe conditions. With l1 > 0 it is
OWL-QN (Andrew & Gao 2007): the direction is built from the pseudo-gradient, and each trial point is projected onto the
orthant chosen at the start of the search. Only the smooth part enters the curvature pairs.

As published, the direction is set to zero where it does not go against the pseudo-gradient. That brings F down fast at
first; near the end it throws away a third of the Newton step, so that the unit step fails and F creeps. From there on
we take the Newton step over the parameters that are free to move: those not zero, or drawn off zero by more than l1
(decision 0007 has the figures). Either way F falls at every iteration.

What a parameter's derivative changes by when it moves differs by orders of magnitude: a frequent word's much, a rare
one's little. The few past steps that are remembered cannot tell so many apart. So each parameter is measured in a unit
of its own, by the diagonal of the Hessian (`Objective.units`): F then bends more equally along all of them. The square
root would make it equal if each fired alone; but they fire together, and the cube root does better.
"""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.learn.batch import Batch
from core.learn.vectors import Vector, Vectors

#: Trials of one line search. Bisection from a step of 1 leaves the range of doubles behind long before.
MAX_TRIALS = 30
#: Sufficient decrease, and for L-BFGS curvature.
ARMIJO, WOLFE = 1e-4, 0.9
#: A pair counts while step . change exceeds this part of |change|^2.
CURVATURE = 1e-12
#: The stop rule looks at the change of F over so many iterations (Andrew & Gao's rule).
PERIOD = 10
#: Stop when the gradient is this small against the weights.
GRADIENT_TOLERANCE = 1e-6
#: Added to what F bends by along a parameter: where nothing bends it, a step must not be without bounds.
LEAST_BEND = 1.0


@dataclass
class Point:
    """Weights with the objective there: F, and the gradient of its smooth part."""

    w: Vector
    objective: float
    gradient: Vector


class Memory:
    """The last steps and gradient changes, as plain arrays of a state.

    The two-loop recursion only ever adds multiples of the stored vectors to the gradient, so it is run on the factors,
    with the products of all vectors at hand (Chen, Wang & Zhou 2014): one sweep over the memory for the products and
    one for the sum, instead of four.

    Directions are formed with each parameter measured in its unit. The memory is kept without, so units may change.
    """

    def __init__(
        self, steps: Vector, changes: Vector, counts: NDArray[np.int64], units: Vector, vectors: Vectors
    ) -> None:
        self._steps, self._changes = steps, changes  # (memory, parameters) each
        self._counts = counts  # [pairs ever stored]
        self.units = units
        self._vectors = vectors

    @property
    def stored(self) -> int:
        """Pairs stored so far."""
        return int(self._counts[0])

    def add(self, old: Point, new: Point) -> None:
        """Keep the pair between two points, unless its curvature is not safely positive."""
        along, square = self._vectors.curvature(new.w, old.w, new.gradient, old.gradient)
        if along <= CURVATURE * square:
            return
        at = self.stored % len(self._steps)
        self._vectors.scaled_sum(new.w, -1.0, old.w, self._steps[at])
        self._vectors.scaled_sum(new.gradient, -1.0, old.gradient, self._changes[at])
        self._counts[0] += 1

    def direction(self, steepest: Vector, allowed: int) -> tuple[Vector, float]:
        """Minus the inverse Hessian's estimate times the gradient, and its slope; of these, the `allowed` part."""
        size, ever = len(self._steps), self.stored
        count = min(ever, size)
        products = self._vectors.gram(self._steps, self._changes, count, steepest, self.units, allowed)
        factors, scale = _two_loops(products, [(ever - 1 - i) % size for i in range(count)])
        return self._vectors.combination(
            self._steps, self._changes, -factors, steepest, -scale, self.units, allowed
        )


def _two_loops(products: Vector, newest_first: list[int]) -> tuple[Vector, float]:
    """Nocedal's recursion on factors of the steps and the changes, and one of the gradient.

    `products` are those of the steps, then the changes, then the gradient. Pairs without curvature are passed over.
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
        """What to measure each parameter in so that F bends more equally along all, at the point evaluated last."""
        bends = yield from self.batch.bends()
        bends += self.l2 + LEAST_BEND
        units: Vector = 1.0 / np.cbrt(bends)
        return units

    def steepest(self, point: Point) -> Vector:
        """The gradient, or for L1 the pseudo-gradient."""
        if self.l1 == 0.0:
            return point.gradient
        return self.vectors.pseudo_gradient(point.w, point.gradient, self.l1)


def step(
    objective: Objective, memory: Memory, point: Point, steepest: Vector, allowed: int
) -> Generator[None, None, Point | None]:
    """One iteration: the next point, or None when no step lowers F any more."""
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
    """Bisect for a step with sufficient decrease and curvature; the best decrease found if trials run out."""
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
    """Halve the step until F falls enough, on the orthant of the point (at zero: the one F falls into)."""
    length = first
    for _ in range(MAX_TRIALS):
        w, gain = objective.vectors.projected_sum(point.w, length, direction, steepest)
        trial = yield from objective.at(w)
        if trial.objective <= point.objective + ARMIJO * gain:
            return trial
        length *= 0.5
    return None
