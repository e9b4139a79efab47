"""`adf` and `madf`: SGD with rates by feature frequency (Sun et al. 2014, section 3; He & Wang 2012, section 2.4).

Both optimise sum of -log p(y | x) + (l2 / 2) |w|^2. What an update does is told in `adaptive`.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from core.inference import chain as ch
from core.inference import vector as v
from core.inference.chain import Floats
from core.learn.adaptive import ADF, MADF, Plan, Rates, run_adaptive, settle_adaptive
from core.learn.descent import Descent, DescentSpec
from core.learn.evaluation import Weights
from core.learn.order import pass_order
from core.learn.pairs import gold_frequencies
from core.learn.problem import Problem
from core.learn.rows import EVERYTHING, Rows
from core.learn.schedule import Schedule
from core.learn.trainer import State, TrainerSpec, in_slices

Share = Annotated[float, Field(gt=0, le=1)]


class AdfSpec(TrainerSpec):
    """`c` is the rate of every feature at first; `alpha` and `beta` bound its decay a `window` (a tenth of a pass)."""

    kind: Literal["adf"] = "adf"
    passes: Annotated[int, Field(ge=1, le=100_000)] = 15
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    c: Annotated[float, Field(gt=0, le=1e6)] | Literal["auto"] = "auto"
    alpha: Share = 0.995
    beta: Share = 0.6
    window: Annotated[int, Field(ge=1, le=2**40)] | None = None
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1

    @model_validator(mode="after")
    def _ordered(self) -> "AdfSpec":
        if self.beta > self.alpha:
            raise ValueError(
                "beta, the decay of features in every sample, must not exceed alpha, that of absent ones"
            )
        return self


class MadfSpec(DescentSpec):
    """`a` and `b` bound the scale of a feature's rate: `b` for the rarest, towards `a` for one at every token."""

    kind: Literal["madf"] = "madf"
    passes: Annotated[int, Field(ge=1, le=100_000)] = 15
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    a: Share = 0.001
    b: Annotated[float, Field(gt=0, le=1e3)] = 1.0
    schedule: Schedule = Schedule(kind="bottou")


class Adaptive(Descent):
    """Both trainers: they differ in the rates."""

    def __init__(self, spec: AdfSpec | MadfSpec) -> None:
        schedule = Schedule(kind="inverse", eta0=spec.c) if isinstance(spec, AdfSpec) else spec.schedule
        super().__init__(DescentSpec(kind=spec.kind, passes=spec.passes, schedule=schedule, batch=spec.batch))
        self.spec = spec
        self.l2 = spec.l2

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        state = super().start(problem, init)
        count = problem.attributes + len(problem.labels)
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

    def _plan(self, problem: Problem, sequences: int, state: State) -> Plan:
        adf = isinstance(self.spec, AdfSpec)
        return Plan(
            kind=ADF if adf else MADF,
            batch=self.spec.batch,
            decay=self.l2 / sequences,
            window=int(state["window_length"][0]),
            alpha=self.spec.alpha if isinstance(self.spec, AdfSpec) else 1.0,
            beta=self.spec.beta if isinstance(self.spec, AdfSpec) else 1.0,
            attributes=problem.attributes,
            labels=len(problem.labels),
            width=problem.width,
            edges=problem.edges,
        )

    def _window(self, problem: Problem) -> int:
        given = self.spec.window if isinstance(self.spec, AdfSpec) else None
        return given or max(1, problem.sentences // 10)

    def _rates(self, problem: Problem, state: State) -> Rates:
        scale: Floats = np.empty(0, self.dtype)
        if isinstance(self.spec, MadfSpec):
            share = gold_frequencies(problem) / max(problem.tokens, 1)
            alpha, beta = 1 / self.spec.a, 1 / self.spec.b
            scale = v.zeros(len(state["weights"]), self.dtype)
            by_row = scale.reshape(-1, problem.width)[:, : len(problem.labels)]
            by_row[:] = 1 / (beta + (alpha - beta) * share)
        return Rates(state["gamma"], state["used"], state["window"], state["paid"], scale)

    def _one_pass(
        self,
        problem: Problem,
        state: State,
        seed: int,
        updates: NDArray[np.float64],
        sequences: int,
        mask: NDArray[np.uint8],
    ) -> Iterator[tuple[float, float]]:
        labels, batch, count = len(problem.labels), self.spec.batch, problem.sentences
        if state["clock"][0] == 0:
            state["gamma"][:] = state["eta0"][0]
        state["window_length"][0] = max(1, self._window(problem) // batch)
        plan = self._plan(problem, sequences, state)
        r = Rows(state["weights"], np.zeros(problem.attributes + labels, self.dtype), mask)
        g = self._rates(problem, state)
        e, c = ch.edges(labels, self.dtype), ch.chain(problem.room(batch), labels, self.dtype)
        order = pass_order(count, seed, int(state["passes"][0]) + 1)
        rates = self._descent.schedule.rates(float(state["eta0"][0]), updates, sequences, self.l2)

        def run(first: int, last: int) -> float:
            return run_adaptive(problem.data, order, rates, first, last, plan, r, g, state["clock"], e, c)

        yield from in_slices(count, batch, run)

    def weights(self, problem: Problem, state: State) -> Weights:
        out = v.zeros(len(state["weights"]), self.dtype)
        g = self._rates(problem, state)
        copies = Rates(g.gamma.copy(), g.used.copy(), g.window.copy(), g.paid.copy(), g.scale)
        plan = self._plan(problem, problem.sentences, state)
        r = Rows(state["weights"], np.empty(0, self.dtype), EVERYTHING)
        settle_adaptive(r, copies, float(state["clock"][0]), plan, out)
        return Weights(problem, out)
