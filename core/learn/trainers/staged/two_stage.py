"""`two-stage`: a few passes of SGD, then OWL-QN until convergence (Zhou, Qiu & Huang 2011, section 3.4).

SGD comes close to the optimum fast, but does not converge. OWL-QN converges, but needs many iterations to come as close
as SGD does in a few passes. Passes are numbered consecutively: first those of SGD, then the iterations of OWL-QN.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.base import Report, State, Trainer, TrainerSpec, part_of, put_part
from tagsmith.core.learn.trainers.batch.owlqn import OwlqnSpec
from tagsmith.core.learn.trainers.batch.training import VECTORS_OF_A_STEP
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1, SgdL1Spec
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.scoring import Weights

_FIRST, _SECOND = "first.", "second."


class TwoStageSpec(TrainerSpec):
    """`l1` is the penalty of both stages; `first` and `second` are their specs, without `l1`."""

    example: ClassVar[dict[str, Any]] = OwlqnSpec.example

    kind: Literal["two-stage"] = "two-stage"
    l1: Annotated[float, Field(gt=0, le=1e6)] = 0.5
    first: SgdL1Spec = SgdL1Spec(passes=5, line_search="heuristic")
    second: OwlqnSpec = OwlqnSpec()
    passes: Annotated[int, Field(ge=2, le=100_000)] = 505

    @model_validator(mode="after")
    def _one_penalty(self) -> "TwoStageSpec":
        for name, stage in (("first", self.first), ("second", self.second)):
            # A stored spec has every field, and therefore the defaults of the stages.
            if stage.l1 not in (self.l1, type(stage).model_fields["l1"].default):
                raise ValueError(
                    f"{name}.l1 is {stage.l1:g}, but both stages use the same penalty. Set `l1` only."
                )
        if self.passes <= self.first.passes:
            raise ValueError("`passes` counts both stages. It must be greater than `first.passes`.")
        return self

    def with_total_passes(self, passes: int) -> "TwoStageSpec":
        """Shorten the first stage if it would leave no pass for the second. Each stage has at least one pass."""
        passes = max(2, passes)
        first = self.first.with_total_passes(min(self.first.passes, passes - 1))
        return self.model_validate({**self.model_dump(), "passes": passes, "first": first.model_dump()})

    @property
    def uses_threads(self) -> bool:
        return True

    def make(self, threads: int) -> "TwoStage":
        return TwoStage(self, threads)

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        # The calibration memory of the first stage is freed before the second begins.
        first, freed = self.first.state_bytes(sizes, threads), self.first.calibration_bytes(sizes)
        return first + max(0, self.second.state_bytes(sizes, threads) - freed)

    def held_bytes(self, sizes: Sizes) -> int:
        return self.state_bytes(sizes, 1) - VECTORS_OF_A_STEP * sizes.vector


class TwoStage(Trainer):
    """SGD, then OWL-QN from the weights of SGD."""

    def __init__(self, spec: TwoStageSpec, threads: int) -> None:
        self.spec = spec
        self.l1, self.l2 = spec.l1, spec.second.l2
        self._first = SgdL1(spec.first.model_copy(update={"l1": spec.l1}))
        self._second = spec.second.model_copy(update={"l1": spec.l1}).make(threads)

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
