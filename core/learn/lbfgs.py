"""Batch trainers: `lbfgs` for an L2 penalty, `owlqn` for L1 or the elastic net. See `quasi_newton`.

A pass is an iteration: one line search, most often one sweep over the corpus.
"""

from collections.abc import Generator, Iterator
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field

from core.learn import working_set
from core.learn.batch import Batch
from core.learn.evaluation import Weights
from core.learn.problem import Problem
from core.learn.quasi_newton import GRADIENT_TOLERANCE, PERIOD, Point, step
from core.learn.trainer import Report, State, Trainer, TrainerSpec
from core.learn.vectors import ALIGNED, ALL, FREE, Vector, Vectors
from core.learn.working_set import WorkingSet
from core.steps import mapped

#: Passes between two looks at which parameters to work on, and in which units. A look costs about two iterations over a
#: small set.
REVIEW = 20
#: The direction is no longer held to the signs of the gradient once F falls by less than this part an iteration.
LOOSE = 2e-3

Found = TypeVar("Found")
Strength = Annotated[float, Field(ge=0, le=1e6)]


class QuasiNewtonSpec(TrainerSpec):
    """`memory` is how many past steps shape the direction; `tolerance`, the relative change of F to stop at."""

    passes: Annotated[int, Field(ge=1, le=100_000)] = 500
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    memory: Annotated[int, Field(ge=1, le=100)] = 10


class LbfgsSpec(QuasiNewtonSpec):
    """`l2` is the weight of |w|^2 / 2 in the objective."""

    kind: Literal["lbfgs"] = "lbfgs"
    l2: Strength = 1.0


class OwlqnSpec(QuasiNewtonSpec):
    """`l1` is the weight of |w|, `l2` of |w|^2 / 2."""

    kind: Literal["owlqn"] = "owlqn"
    l1: Annotated[float, Field(gt=0, le=1e6)] = 0.5
    l2: Strength = 0.0


class QuasiNewton(Trainer):
    """Both trainers: they differ in l1 alone."""

    def __init__(self, spec: LbfgsSpec | OwlqnSpec, threads: int) -> None:
        self.spec = spec
        self.l1 = spec.l1 if isinstance(spec, OwlqnSpec) else 0.0
        self.l2 = spec.l2
        self._threads = threads
        self._batch: Batch | None = None

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        parameters = self._of(problem).parameters
        return {
            "w": np.zeros(parameters) if init is None else self.parameters_of(problem, init),
            "gradient": np.zeros(parameters),
            "passes": np.zeros(1, np.int64),
            "double": np.zeros(1, np.int64),
            "loose": np.zeros(1, np.int64),
            # The pass after which F had converged, and parameters that had been left out were taken in.
            "reviewed": np.full(1, -PERIOD - 1, np.int64),
            # F at the present point and at the PERIOD points before, newest first; NaN where there is none yet.
            "objectives": np.full(PERIOD + 1, np.nan),
            **working_set.whole(parameters, self.spec.memory),
        }

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        del seed  # nothing here is drawn
        work = self._work(problem, state)
        number = int(state["passes"][0])
        if np.isnan(state["objectives"][0]):
            state["objectives"][0] = yield from _watched(work.measure(), number)
            if state["w"].any():
                work = work.chosen()  # weights to start from tell which parameters count
        point = work.point(float(state["objectives"][0]))
        stuck, due = False, number % REVIEW == 0 and number > 0
        while True:
            steepest = work.objective.steepest(point)
            done = stuck or self._converged(work.objective.vectors, point, steepest, state["objectives"])
            unseen = done and not work.all and number - state["reviewed"][0] > PERIOD
            if due or unseen:
                yield from _watched(work.measure(), number)
                before, work, due = work, work.chosen(), False
                if work is not before:
                    if unseen:
                        # What was taken in has as many iterations to prove its worth as the rule looks back.
                        state["objectives"][1:], state["reviewed"][0], stuck = np.nan, number, False
                    point = work.point(point.objective)
                    continue
            if done:
                return
            found = yield from _watched(
                step(work.objective, work.memory, point, steepest, self._allowed(state)), number
            )
            if found is None:
                # No step is seen to lower F: the noise of float32 is larger than what is left to gain.
                if state["double"][0]:
                    stuck = True
                    continue
                state["double"][0] = 1
                work = self._work(problem, state)
                point = yield from _watched(work.objective.at(point.w), number)
                # What was measured in float32 is not to be compared with what comes.
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
        full = Batch.of(problem, self._threads, np.float64) if state["double"][0] else self._of(problem)
        return WorkingSet(full, self.l1, self.l2, state)

    def _allowed(self, state: State) -> int:
        """Which part of a direction to take. See `quasi_newton`."""
        if self.l1 == 0.0:
            return ALL
        if _fall(state["objectives"]) < LOOSE:
            state["loose"][0] = 1
        return FREE if state["loose"][0] else ALIGNED

    def _converged(self, vectors: Vectors, point: Point, steepest: Vector, objectives: Vector) -> bool:
        """Andrew & Gao's rule on F, or a gradient that is nothing against the weights."""
        slope2, norm2 = vectors.norms(steepest)[1], vectors.norms(point.w)[1]
        if slope2 <= GRADIENT_TOLERANCE**2 * max(1.0, norm2):
            return True
        return _fall(objectives) < self.spec.tolerance

    def weights(self, problem: Problem, state: State) -> Weights:
        return self._of(problem).weights(state["w"])

    def parameters_of(self, problem: Problem, weights: Weights) -> np.ndarray:
        """Weights as the vector that this trainer works on."""
        return self._of(problem).parameters_of(weights)

    def _of(self, problem: Problem) -> Batch:
        if self._batch is None or self._batch.problem is not problem:
            self._batch = Batch.of(problem, self._threads)
        return self._batch


def _fall(objectives: Vector) -> float:
    """How much F fell in an iteration of late, relative to F; NaN when there were too few."""
    oldest, newest = float(objectives[PERIOD]), float(objectives[0])
    return (oldest - newest) / PERIOD / abs(newest) if newest else 0.0


def _watched(work: Generator[None, None, Found], number: int) -> Generator[Report, None, Found]:
    """Run the work, reporting at each of its pauses."""
    return mapped(work, lambda _: Report("train", number, 0.0))
