"""`two-stage`: a few passes of SGD, then OWL-QN from there until it converges (Zhou, Qiu & Huang 2011, section 3.4).

SGD comes close fast and never arrives; OWL-QN arrives, and spends its first iterations on the way to where SGD is after
a few passes. Passes are counted through: SGD's first, then OWL-QN's iterations.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from core.learn.evaluation import Weights
from core.learn.lbfgs import OwlqnSpec, QuasiNewton
from core.learn.problem import Problem
from core.learn.sgd_l1 import SgdL1, SgdL1Spec
from core.learn.trainer import Report, State, Trainer, TrainerSpec, part_of, put_part

_FIRST, _SECOND = "first.", "second."


class TwoStageSpec(TrainerSpec):
    """`l1` is the penalty of both stages; `first` and `second` are their specs, without it."""

    kind: Literal["two-stage"] = "two-stage"
    l1: Annotated[float, Field(gt=0, le=1e6)] = 0.5
    first: SgdL1Spec = SgdL1Spec(passes=5, line_search="heuristic")
    second: OwlqnSpec = OwlqnSpec()
    passes: Annotated[int, Field(ge=2, le=100_000)] = 505

    @model_validator(mode="after")
    def _one_penalty(self) -> "TwoStageSpec":
        for name, stage in (("first", self.first), ("second", self.second)):
            # What a spec is stored as names every field, and so the stages' own defaults.
            if stage.l1 not in (self.l1, type(stage).model_fields["l1"].default):
                raise ValueError(
                    f"{name}.l1 is {stage.l1:g}, but the stages share one penalty: give l1 alone"
                )
        if self.passes <= self.first.passes:
            raise ValueError("passes counts both stages: it must exceed first.passes")
        return self


class TwoStage(Trainer):
    """See the module."""

    def __init__(self, spec: TwoStageSpec, threads: int) -> None:
        self.spec = spec
        self.l1, self.l2 = spec.l1, spec.second.l2
        self._first = SgdL1(spec.first.model_copy(update={"l1": spec.l1}))
        self._second = QuasiNewton(spec.second.model_copy(update={"l1": spec.l1}), threads)

    def start(self, problem: Problem, init: Weights | None = None) -> State:
        state: State = {}
        put_part(state, _FIRST, self._first.start(problem, init))
        put_part(state, _SECOND, self._second.start(problem))
        return state

    def passes(self, problem: Problem, state: State, seed: int) -> Iterator[Report]:
        first, second = part_of(state, _FIRST), part_of(state, _SECOND)
        own = self.spec.first.passes
        if first["passes"][0] < own:
            for report in self._first.passes(problem, first, seed):
                done = report.pass_done and report.pass_number == own
                if done:
                    start = self._first.weights(problem, first)
                    second["w"][:] = self._second.parameters_of(problem, start)
                yield replace(report, message="stage 2: OWL-QN from here") if done else report
                if done:
                    break
        for report in self._second.passes(problem, second, seed):
            yield replace(report, pass_number=own + report.pass_number)

    def weights(self, problem: Problem, state: State) -> Weights:
        first, second = part_of(state, _FIRST), part_of(state, _SECOND)
        if np.isnan(second["objectives"][0]):
            return self._first.weights(problem, first)
        return self._second.weights(problem, second)
