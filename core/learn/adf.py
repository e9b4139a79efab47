"""`adf` and `madf`: SGD with rates by feature frequency (Sun et al. 2014, section 3; He & Wang 2012, section 2.4).

Both optimise sum of -log p(y | x) + (l2 / 2) |w|^2. What an update does is told in `adaptive`.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from core.inference import vector as v
from core.inference.chain import Floats
from core.learn.adaptive import ADF, MADF, Plan, Rates, run_adaptive, settle_adaptive
from core.learn.descent import Descent, DescentSpec, Pass
from core.learn.evaluation import Weights
from core.learn.pairs import gold_frequencies
from core.learn.problem import Problem
from core.learn.rows import EVERYTHING, Rows
from core.learn.schedule import Schedule
from core.learn.trainer import State, TrainerSpec

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
    a: Annotated[float, Field(ge=1e-9, le=1)] = 0.001
    b: Annotated[float, Field(ge=1e-9, le=1e3)] = 1.0
    schedule: Schedule = Schedule(kind="bottou")


class Adaptive(Descent):
    """Both trainers: they differ in the rates."""

    def __init__(self, spec: AdfSpec | MadfSpec) -> None:
        schedule = Schedule(kind="inverse", eta0=spec.c) if isinstance(spec, AdfSpec) else spec.schedule
        super().__init__(DescentSpec(kind=spec.kind, passes=spec.passes, schedule=schedule, batch=spec.batch))
        self.spec = spec
        self.l2 = spec.l2
        self._no_scale: Floats = np.empty(0, self.dtype)
        self._scale_of: tuple[Problem, Floats] | None = None

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
            blocks=problem.blocks,
            labels=len(problem.labels),
            width=problem.width,
            edges=problem.edges,
        )

    def _window(self, problem: Problem) -> int:
        given = self.spec.window if isinstance(self.spec, AdfSpec) else None
        return given or max(1, problem.sentences // 10)

    def _rates(self, problem: Problem, state: State) -> Rates:
        scale = self._scale(problem, self.spec) if isinstance(self.spec, MadfSpec) else self._no_scale
        return Rates(state["gamma"], state["used"], state["window"], state["paid"], scale)

    def _scale(self, problem: Problem, spec: MadfSpec) -> Floats:
        """B of every weight: counted once a problem."""
        if self._scale_of is None or self._scale_of[0] is not problem:
            # In place: these are the largest arrays of the trainer.
            share = gold_frequencies(problem)
            share /= max(problem.tokens, 1)
            # Values may sum to less than nothing, or to more than one a token.
            np.clip(share, 0.0, 1.0, out=share)
            share *= 1 / spec.a - 1 / spec.b
            share += 1 / spec.b
            scale = v.zeros(len(share) * problem.width, self.dtype)
            scale.reshape(-1, problem.width)[:, : len(problem.labels)] = np.reciprocal(share, out=share)
            self._scale_of = (problem, scale)
        return self._scale_of[1]

    def _updates(self, problem: Problem, state: State, p: Pass) -> Callable[[int, int], float]:
        if state["clock"][0] == 0:
            state["gamma"][:] = state["eta0"][0]
        state["window_length"][0] = max(1, self._window(problem) // self.spec.batch)
        plan = self._plan(problem, p.sequences, state)
        r = Rows(state["weights"], np.zeros(len(state["paid"]), self.dtype), p.mask)
        g = self._rates(problem, state)

        def run(first: int, last: int) -> float:
            return run_adaptive(
                problem.data, p.order, p.rates, first, last, plan, r, g, state["clock"], p.edges, p.chain
            )

        return run

    def weights(self, problem: Problem, state: State) -> Weights:
        out = v.zeros(len(state["weights"]), self.dtype)
        g = self._rates(problem, state)
        copies = Rates(g.gamma.copy(), g.used.copy(), g.window.copy(), g.paid.copy(), g.scale)
        plan = self._plan(problem, problem.sentences, state)
        r = Rows(state["weights"], np.empty(0, self.dtype), EVERYTHING)
        settle_adaptive(r, copies, float(state["clock"][0]), plan, out)
        return Weights(problem, out)
