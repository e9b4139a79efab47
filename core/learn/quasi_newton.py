"""Limited-memory quasi-Newton: one two-loop recursion for L-BFGS and OWL-QN.

    F(w) = L(w) + l1 |w|_1 + (l2 / 2) |w|^2

With l1 = 0 this is L-BFGS (Nocedal 1980) with a bisection search for the weak Wolfe conditions. With l1 > 0 it is
OWL-QN (Andrew & Gao 2007): the direction is built from the pseudo-gradient and clipped to its orthant, and each trial
point is projected onto the orthant chosen at the start of the search. Only the smooth part enters the curvature pairs.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.learn.batch import Batch

Vector = NDArray[np.float64]

#: Trials of one line search. Bisection from a step of 1 leaves the range of doubles behind long before.
MAX_TRIALS = 30
#: Sufficient decrease, and for L-BFGS curvature.
ARMIJO, WOLFE = 1e-4, 0.9
#: The stop rule looks at the change of F over so many iterations (Andrew & Gao's rule).
PERIOD = 10
#: Stop when the gradient is this small against the weights.
GRADIENT_TOLERANCE = 1e-6

Outcome = Literal["moved", "converged"]


@dataclass
class Point:
    """Weights with the objective there: F, and the gradient of its smooth part."""

    w: Vector
    objective: float
    gradient: Vector


class Memory:
    """The last steps and gradient changes, as plain arrays of a state."""

    def __init__(
        self, steps: NDArray[np.float64], changes: NDArray[np.float64], counts: NDArray[np.int64]
    ) -> None:
        self._steps, self._changes = steps, changes  # (memory, parameters) each
        self._counts = counts  # [pairs ever stored]

    @property
    def stored(self) -> int:
        """Pairs stored so far."""
        return int(self._counts[0])

    def add(self, step: Vector, change: Vector) -> None:
        """Keep a pair, unless its curvature is not safely positive."""
        curvature = float(step @ change)
        if curvature <= 1e-12 * float(change @ change):
            return
        at = self.stored % len(self._steps)
        self._steps[at], self._changes[at] = step, change
        self._counts[0] += 1

    def apply(self, gradient: Vector) -> Vector:
        """The inverse Hessian's estimate times the gradient (two-loop recursion)."""
        size, ever = len(self._steps), self.stored
        newest_first = [(ever - 1 - i) % size for i in range(min(ever, size))]
        q = gradient.copy()
        alphas = []
        for i in newest_first:
            rho = 1.0 / float(self._steps[i] @ self._changes[i])
            alpha = rho * float(self._steps[i] @ q)
            alphas.append((i, rho, alpha))
            q -= alpha * self._changes[i]
        if newest_first:
            s, y = self._steps[newest_first[0]], self._changes[newest_first[0]]
            q *= float(s @ y) / float(y @ y)
        for i, rho, alpha in reversed(alphas):
            beta = rho * float(self._changes[i] @ q)
            q += (alpha - beta) * self._steps[i]
        return q


@dataclass(frozen=True)
class Objective:
    """F over a batch."""

    batch: Batch
    l1: float
    l2: float

    def at(self, w: Vector) -> Generator[None, None, Point]:
        """Evaluate F at `w`."""
        loss, gradient = yield from self.batch.evaluate(w)
        gradient += self.l2 * w
        penalty = self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)
        return Point(w, loss + penalty, gradient)

    def steepest(self, point: Point) -> Vector:
        """The pseudo-gradient: at zero, the derivative towards the side where F falls, or nothing if there is none."""
        if self.l1 == 0.0:
            return point.gradient
        g, w = point.gradient, point.w
        at_zero = np.where(g > self.l1, g - self.l1, np.where(g < -self.l1, g + self.l1, 0.0))
        return np.where(w == 0.0, at_zero, g + self.l1 * np.sign(w))


def step(objective: Objective, memory: Memory, point: Point) -> Generator[None, None, Point | None]:
    """One iteration: the next point, or None when no step lowers F any more."""
    steepest = objective.steepest(point)
    direction = -memory.apply(steepest)
    if objective.l1 > 0.0:
        direction[direction * steepest >= 0.0] = 0.0
    slope = float(direction @ steepest)
    if not slope < 0.0:
        direction, slope = -steepest, -float(steepest @ steepest)
    if slope == 0.0:
        return None
    first = 1.0 if memory.stored else 1.0 / np.sqrt(-slope)
    if objective.l1 > 0.0:
        found = yield from _orthant_search(objective, point, steepest, direction, float(first))
    else:
        found = yield from _wolfe_search(objective, point, direction, slope, float(first))
    if found is not None:
        memory.add(found.w - point.w, found.gradient - point.gradient)
    return found


def _wolfe_search(
    objective: Objective, point: Point, direction: Vector, slope: float, first: float
) -> Generator[None, None, Point | None]:
    """Bisect for a step with sufficient decrease and curvature; the best decrease found if trials run out."""
    low, high, length = 0.0, np.inf, first
    best: Point | None = None
    for _ in range(MAX_TRIALS):
        trial = yield from objective.at(point.w + length * direction)
        if not trial.objective <= point.objective + ARMIJO * length * slope:
            high = length
        else:
            if best is None or trial.objective < best.objective:
                best = trial
            if float(trial.gradient @ direction) >= WOLFE * slope:
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
    orthant = np.where(point.w == 0.0, -np.sign(steepest), np.sign(point.w))
    length = first
    for _ in range(MAX_TRIALS):
        w = point.w + length * direction
        w[w * orthant <= 0.0] = 0.0
        trial = yield from objective.at(w)
        if trial.objective <= point.objective + ARMIJO * float((w - point.w) @ steepest):
            return trial
        length *= 0.5
    return None
