"""Batch trainers: `lbfgs` for an L2 penalty, `owlqn` for L1 or the elastic net. See `quasi_newton`.

A pass is an iteration: one line search, most often one sweep over the corpus.
"""

from collections.abc import Generator, Iterator
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field

from core.learn.batch import Batch
from core.learn.evaluation import Weights
from core.learn.problem import Problem
from core.learn.quasi_newton import GRADIENT_TOLERANCE, PERIOD, Memory, Objective, Point, step
from core.learn.trainer import Report, State, Trainer, TrainerSpec
from core.learn.vectors import Vector, Vectors

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
            "steps": np.zeros((self.spec.memory, parameters)),
            "changes": np.zeros((self.spec.memory, parameters)),
            "products": np.zeros((2 * self.spec.memory, 2 * self.spec.memory)),
            "stored": np.zeros(1, np.int64),
            "passes": np.zeros(1, np.int64),
            "double": np.zeros(1, np.int64),
            # F at the present point and at the PERIOD points before, newest first; NaN where there is none yet.
            "objectives": np.full(PERIOD + 1, np.nan),
        }

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        del seed  # nothing here is drawn
        objective = self._objective(problem, state)
        vectors = objective.vectors
        memory = Memory(state["steps"], state["changes"], state["products"], state["stored"], vectors)
        number = int(state["passes"][0])
        if np.isnan(state["objectives"][0]):
            point = yield from self._watched(objective.at(state["w"]), number)
            state["gradient"][:], state["objectives"][0] = point.gradient, point.objective
        point = Point(state["w"].copy(), float(state["objectives"][0]), state["gradient"].copy())
        while True:
            steepest = objective.steepest(point)
            if self._converged(vectors, point, steepest, state["objectives"]):
                return
            found = yield from self._watched(step(objective, memory, point, steepest), number)
            if found is None:
                # No step is seen to lower F: the noise of float32 is larger than what is left to gain.
                if state["double"][0]:
                    return
                state["double"][0] = 1
                objective = self._objective(problem, state)
                point = yield from self._watched(objective.at(point.w), number)
                continue
            point, number = found, number + 1
            state["w"][:], state["gradient"][:], state["passes"][0] = point.w, point.gradient, number
            state["objectives"][1:] = state["objectives"][:-1].copy()
            state["objectives"][0] = point.objective
            yield Report("train", number, 0.0, pass_done=True, objective=point.objective)

    def _objective(self, problem: Problem, state: State) -> Objective:
        batch = Batch(problem, self._threads, np.float64) if state["double"][0] else self._of(problem)
        return Objective(batch, self.l1, self.l2)

    def _converged(self, vectors: Vectors, point: Point, steepest: Vector, objectives: Vector) -> bool:
        """Andrew & Gao's rule on F, or a gradient that is nothing against the weights."""
        slope2, norm2 = vectors.norms(steepest)[1], vectors.norms(point.w)[1]
        if slope2 <= GRADIENT_TOLERANCE**2 * max(1.0, norm2):
            return True
        oldest, newest = objectives[PERIOD], objectives[0]
        return bool((oldest - newest) / PERIOD < self.spec.tolerance * abs(newest))

    @staticmethod
    def _watched(work: Generator[None, None, Found], number: int) -> Generator[Report, None, Found]:
        """Run the work, reporting at each of its pauses."""
        while True:
            try:
                next(work)
            except StopIteration as stop:
                found: Found = stop.value
                return found
            yield Report("train", number, 0.0)

    def weights(self, problem: Problem, state: State) -> Weights:
        return self._of(problem).weights(state["w"])

    def parameters_of(self, problem: Problem, weights: Weights) -> np.ndarray:
        """Weights as the vector that this trainer works on."""
        return self._of(problem).parameters_of(weights)

    def _of(self, problem: Problem) -> Batch:
        if self._batch is None or self._batch.problem is not problem:
            self._batch = Batch(problem, self._threads)
        return self._batch
