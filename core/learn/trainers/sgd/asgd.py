"""`asgd`: averaged stochastic gradient descent (Polyak & Juditsky 1992; Bottou 2010; Xu 2011).

Minimises sum of -log p(y | x) + (l2 / 2) |w|^2. The updates are those of `sgd`. From a switch point on, the model is
the mean of the weights after each update, summed lazily (see `updates`).
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from tagsmith.core.base import simd as v
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import State
from tagsmith.core.learn.trainers.sgd.descent import Descent, DescentSpec, Pass
from tagsmith.core.learn.trainers.sgd.updates import Mean, Penalty
from tagsmith.core.learn.weights.scoring import Weights


class AsgdSpec(DescentSpec):
    """`l2` is the weight of |w|^2 / 2 in the objective; `start` is the number of passes before averaging begins."""

    dense: ClassVar[bool] = True
    matrices: ClassVar[int] = 2

    kind: Literal["asgd"] = "asgd"
    passes: Annotated[int, Field(ge=1, le=100_000)] = 15
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    start: Annotated[float, Field(ge=0, le=100_000)] | None = None

    @model_validator(mode="after")
    def _averages(self) -> "AsgdSpec":
        if self.start is not None and self.start >= self.passes:
            raise ValueError("`start` must be less than `passes`. Otherwise nothing is averaged.")
        return self

    def with_total_passes(self, passes: int) -> "AsgdSpec":
        """Reset `start` to its default, half of the passes, if it would be after the last pass."""
        start = self.start if self.start is None or self.start < passes else None
        return self.model_validate({**self.model_dump(), "passes": passes, "start": start})

    def make(self, threads: int) -> "Asgd":
        del threads
        return Asgd(self)


class Asgd(Descent):
    """SGD whose model is the mean of the weights."""

    rule: Penalty = Penalty.DECAY

    def __init__(self, spec: AsgdSpec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l2 = spec.l2

    @property
    def _switch(self) -> float:
        """The number of passes before averaging: by default half, so that even a single pass averages good weights."""
        given = self.spec.start
        return self.spec.passes / 2 if given is None else given

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        state = super().start(problem, init)
        state["sums"] = v.zeros(len(state["weights"]), self.dtype)
        state["totals"] = np.zeros(2)
        return state

    def _mean(self, state: State, p: Pass) -> Mean:
        first = int(np.searchsorted(p.updates, self._switch * p.sequences))
        return Mean(True, state["sums"], state["totals"], first)

    def weights(self, problem: Problem, state: State) -> Weights:
        scales, count = state["totals"]
        if count == 0:
            return super().weights(problem, state)
        out = v.zeros(len(state["weights"]), self.dtype)
        np.multiply(state["weights"], self.dtype(scales), out=out)
        out += state["sums"]
        out /= self.dtype(count)
        return Weights(problem, out)
