"""`asgd`: averaged stochastic gradient descent (Polyak & Juditsky 1992; Bottou 2010; Xu 2011).

Optimises sum of -log p(y | x) + (l2 / 2) |w|^2. Updates are those of `sgd`; from a switch point on the model is the
mean of the weights after each update, kept lazily beside the weights (see `updates`).
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from core.inference import vector as v
from core.learn.descent import Descent, DescentSpec, Pass
from core.learn.evaluation import Weights
from core.learn.problem import Problem
from core.learn.trainer import State
from core.learn.updates import DECAY, Mean


class AsgdSpec(DescentSpec):
    """`l2` is the weight of |w|^2 / 2 in the objective; `start`, the passes before averaging begins."""

    kind: Literal["asgd"] = "asgd"
    passes: Annotated[int, Field(ge=1, le=100_000)] = 15
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    start: Annotated[float, Field(ge=0, le=100_000)] | None = None

    @model_validator(mode="after")
    def _averages(self) -> "AsgdSpec":
        if self.start is not None and self.start >= self.passes:
            raise ValueError("start must be less than passes, or nothing would be averaged")
        return self


class Asgd(Descent):
    """See the module."""

    mode = DECAY

    def __init__(self, spec: AsgdSpec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l2 = spec.l2

    @property
    def _switch(self) -> float:
        """Passes before averaging: half of all if not given, so that even a single pass has a mean of good weights."""
        given = self.spec.start
        return self.spec.passes / 2 if given is None else given

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        state = super().start(problem, init)
        state["sums"] = v.zeros(len(state["weights"]), self.dtype)
        state["totals"] = np.zeros(2)
        return state

    def _mean(self, state: State, p: Pass) -> Mean:
        first = int(np.searchsorted(p.updates, self._switch * p.sequences))
        return Mean(state["sums"], state["totals"], first)

    def weights(self, problem: Problem, state: State) -> Weights:
        scales, count = state["totals"]
        if count == 0:
            return super().weights(problem, state)
        out = v.zeros(len(state["weights"]), self.dtype)
        np.multiply(state["weights"], self.dtype(scales), out=out)
        out += state["sums"]
        out /= self.dtype(count)
        return Weights(problem, out)
