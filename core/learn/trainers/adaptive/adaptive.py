"""The trainer that `adf` and `madf` share. They differ in their learning rates. `updates` has the update rules."""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from tagsmith.core.base import simd as v
from tagsmith.core.inference.chain import Floats
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.adaptive.updates import (
    AdaptivePlan,
    Rates,
    run_adaptive,
    settle_adaptive,
)
from tagsmith.core.learn.trainers.base import State
from tagsmith.core.learn.trainers.sgd.descent import Descent, DescentSpec, Pass
from tagsmith.core.learn.trainers.sgd.updates import PassData
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.rows import rows_of
from tagsmith.core.learn.weights.scoring import Weights


def adaptive_bytes(sizes: Sizes, batch: int) -> int:
    """Estimate the state of either trainer: one rate and three counts per row, of which reading copies three."""
    return 2 * sizes.matrix + (4 + 3) * 8 * sizes.rows + sizes.chains(batch)


class Adaptive(Descent):
    """SGD with a learning rate per row or per weight."""

    def __init__(self, spec: DescentSpec, l2: float) -> None:
        super().__init__(spec)
        self.l2 = l2

    @abstractmethod
    def _plan(self, problem: Problem, sequences: int) -> AdaptivePlan:
        """Return how the rates decay, in a run over N `sequences`."""

    @abstractmethod
    def _scale(self, problem: Problem) -> Floats:
        """Return the rate scale of every weight, (rows * width,), or an empty array."""

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        state = super().start(problem, init)
        count = problem.rows
        del state["touched"], state["penalty"]
        state |= {
            "gamma": np.full(count, state["eta0"][0]),
            "used": np.zeros(count, np.int64),
            "window": np.zeros(count, np.int64),
            "paid": np.zeros(count),
            "clock": np.zeros(1),
            "window_length": np.ones(1, np.int64),
        }
        return state

    def _rates(self, problem: Problem, state: State) -> Rates:
        scale = self._scale(problem)
        return Rates(state["gamma"], state["used"], state["window"], state["paid"], scale)

    def _updates(self, problem: Problem, state: State, p: Pass) -> Callable[[int, int], float]:
        if state["clock"][0] == 0:
            state["gamma"][:] = state["eta0"][0]
        plan = self._plan(problem, p.sequences)
        state["window_length"][0] = plan.window
        r = rows_of(state["weights"], np.empty(0, self.dtype), p.mask)
        g, data = self._rates(problem, state), PassData(problem.data, p.order, p.rates)

        def run(first: int, last: int) -> float:
            return run_adaptive(data, first, last, plan, r, g, state["clock"], p.buffers)

        return run

    def weights(self, problem: Problem, state: State) -> Weights:
        out = v.zeros(len(state["weights"]), self.dtype)
        g = self._rates(problem, state)
        copies = Rates(g.gamma.copy(), g.used.copy(), g.window.copy(), g.paid, g.scale)
        plan = self._plan(problem, problem.sentences)._replace(window=int(state["window_length"][0]))
        r = rows_of(state["weights"], np.empty(0, self.dtype))
        settle_adaptive(r, copies, float(state["clock"][0]), plan, out)
        return Weights(problem, out)
