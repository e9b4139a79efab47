"""The trainer that `lbfgs` and `owlqn` share: it runs the iterations of `quasi_newton` until convergence.

A pass is one iteration: one line search, usually with one sweep over the corpus.
"""

from collections.abc import Generator, Iterator
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from tagsmith.core.base.steps import mapped
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Report, State, Trainer, TrainerSpec
from tagsmith.core.learn.trainers.batch import working_set
from tagsmith.core.learn.trainers.batch.gradient import Batch
from tagsmith.core.learn.trainers.batch.quasi_newton import GRADIENT_TOLERANCE, PERIOD, Point, step
from tagsmith.core.learn.trainers.batch.vectors import Restriction, Vector, Vectors
from tagsmith.core.learn.trainers.batch.working_set import WorkingSet
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.scoring import Weights

#: Passes between two reviews of the working set and the units. A review costs about two iterations over a small set.
REVIEW = 20
#: The direction is no longer restricted to the gradient signs once F falls by less than this fraction per iteration.
LOOSE = 2e-3

#: Vectors besides the memory: the point, its gradient and the units, both in the state and in use (6); gold counts,
#: steepest descent and direction (3); a trial point and its gradient (2).
WORKING_VECTORS = 11
#: The number of these that exist only during a step.
VECTORS_OF_A_STEP = 7

Found = TypeVar("Found")
Strength = Annotated[float, Field(ge=0, le=1e6)]


class QuasiNewtonSpec(TrainerSpec):
    """`memory` is the number of past steps in the direction; `tolerance`, the relative change of F to stop at."""

    passes: Annotated[int, Field(ge=1, le=100_000)] = 500
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    memory: Annotated[int, Field(ge=1, le=100)] = 10

    @property
    def uses_threads(self) -> bool:
        return True

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        vectors = 2 * min(self.memory, self.passes) + WORKING_VECTORS
        marginals = sizes.marginals * sizes.tokens
        # The labels of the parameters, and the tokens of the attributes.
        layout = 4 * sizes.parameters + 4 * sizes.cells + 8 * 2 * sizes.rows
        chains = (sizes.chain * sizes.longest + sizes.solver) * threads
        # Weights, marginals and chains in float64: a run switches to float64 when no step lowers F in float32.
        double = 2 * (sizes.matrix + marginals + chains)
        return vectors * sizes.vector + layout + double

    def held_bytes(self, sizes: Sizes) -> int:
        return self.state_bytes(sizes, 1) - VECTORS_OF_A_STEP * sizes.vector


class QuasiNewton(Trainer):
    """Minimise the loss with an L1 and an L2 penalty, either of which may be 0."""

    def __init__(self, spec: QuasiNewtonSpec, l1: float, l2: float, threads: int) -> None:
        self.spec = spec
        self.l1, self.l2 = l1, l2
        self._threads = threads
        self._batch: Batch | None = None
        self._double = False  # whether the batch is in float64

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        parameters = self._of(problem).parameters
        return {
            "w": np.zeros(parameters) if init is None else self.parameters_of(problem, init),
            "gradient": np.zeros(parameters),
            "passes": np.zeros(1, np.int64),
            "double": np.zeros(1, np.int64),
            "loose": np.zeros(1, np.int64),
            # The last pass after which F had converged and excluded parameters were added.
            "reviewed": np.full(1, -PERIOD - 1, np.int64),
            # F at the current point and at the PERIOD points before, newest first; NaN where missing.
            "objectives": np.full(PERIOD + 1, np.nan),
            **working_set.whole(parameters, self.spec.memory),
        }

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        del seed  # this trainer draws no random numbers
        work = self._work(problem, state)
        number = int(state["passes"][0])
        if np.isnan(state["objectives"][0]):
            state["objectives"][0] = yield from _watched(work.measure(), number)
            if state["w"].any():
                work = work.chosen()  # the initial weights show which parameters matter
        point = work.point(float(state["objectives"][0]))
        stuck, due = False, number % REVIEW == 0 and number > 0
        while True:
            steepest = work.objective.steepest(point)
            done = stuck or self._converged(work.objective.vectors, point, steepest, state["objectives"])
            unseen = done and not work.all and number - state["reviewed"][0] > PERIOD
            if due or unseen:
                yield from _watched(work.measure(), number)
                chosen = work.chosen()
                renewed = chosen is not work
                work, due = chosen, False
                del chosen  # so that `work` can be freed below
                if renewed:
                    if unseen:
                        # Give the added parameters as many iterations as the stop rule looks back.
                        state["objectives"][1:], state["reviewed"][0], stuck = np.nan, number, False
                    point = work.point(point.objective)
                    continue
            if done:
                return
            found = yield from _watched(
                step(work.objective, work.memory, point, steepest, self._allowed(state)), number
            )
            if found is None:
                # No step lowers F measurably: the rounding error of float32 exceeds the remaining gain.
                if state["double"][0]:
                    stuck = True
                    continue
                state["double"][0] = 1
                del work  # so that both precisions are never in memory together
                work = self._work(problem, state)
                point = yield from _watched(work.objective.at(point.w), number)
                # Objectives in float32 are not comparable with the later ones in float64.
                state["objectives"][0], state["objectives"][1:] = point.objective, np.nan
                continue
            point, number = found, number + 1
            work.keep(point)
            state["passes"][0] = number
            state["objectives"][1:] = state["objectives"][:-1].copy()
            state["objectives"][0] = point.objective
            due = number % REVIEW == 0
            yield Report("train", number, 0.0, pass_done=True, objective=point.objective)

    def _work(self, problem: Problem, state: State) -> WorkingSet:
        double = bool(state["double"][0])
        if double != self._double:
            self._batch, self._double = None, double
        return WorkingSet(self._of(problem), self.l1, self.l2, state)

    def _allowed(self, state: State) -> Restriction:
        """Return which part of a direction to take; `quasi_newton` explains the choice."""
        if self.l1 == 0.0:
            return Restriction.ALL
        if _fall(state["objectives"]) < LOOSE:
            state["loose"][0] = 1
        return Restriction.FREE if state["loose"][0] else Restriction.ALIGNED

    def _converged(self, vectors: Vectors, point: Point, steepest: Vector, objectives: Vector) -> bool:
        """Apply Andrew & Gao's rule to F, or check for a gradient that is negligible relative to the weights."""
        slope2, norm2 = vectors.norms(steepest)[1], vectors.norms(point.w)[1]
        if slope2 <= GRADIENT_TOLERANCE**2 * max(1.0, norm2):
            return True
        return _fall(objectives) < self.spec.tolerance

    def weights(self, problem: Problem, state: State) -> Weights:
        return self._of(problem).weights(state["w"])

    def parameters_of(self, problem: Problem, weights: Weights) -> np.ndarray:
        """Convert weights to the parameter vector of this trainer."""
        return self._of(problem).parameters_of(weights)

    def _of(self, problem: Problem) -> Batch:
        if self._batch is None or self._batch.problem is not problem:
            self._batch = None
            self._batch = Batch.of(problem, self._threads, np.float64 if self._double else np.float32)
        return self._batch


def _fall(objectives: Vector) -> float:
    """Return the recent decrease of F per iteration, relative to F; NaN after too few iterations."""
    oldest, newest = float(objectives[PERIOD]), float(objectives[0])
    return (oldest - newest) / PERIOD / abs(newest) if newest else 0.0


def _watched(work: Generator[None, None, Found], number: int) -> Generator[Report, None, Found]:
    """Run the work and report at each of its yields."""
    return mapped(work, lambda _: Report("train", number, 0.0))
