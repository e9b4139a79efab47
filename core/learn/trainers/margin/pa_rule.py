"""The smallest step that labels the sample correctly with a margin: `pa` and `mira` (Crammer et al. 2006).

    loss = score(y) + cost(y) - score(gold),   w += tau d,   d = phi(gold) - phi(y)
    PA-I: tau = min(C, loss / |d|^2)    PA-II: tau = loss / (|d|^2 + 1 / (2 C))    MIRA: tau = loss / |d|^2

Section 8 of the paper has two updates. `max-loss` uses the y with the greatest loss: decoding adds its cost to every
wrong label. `prediction` uses the y with the greatest score, so a correctly labelled sample causes no update. The cost
of y can then also be the square root of the sum, or 1, as in CRFsuite.

MIRA with a C is PA. Weights are averaged unless `averaged` is false.
"""

from math import inf
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.margin.costs import Costs, cost_vector
from tagsmith.core.learn.trainers.margin.margin import Margin, Rule, Total, rule_of
from tagsmith.core.learn.trainers.margin.online import Online, OnlineSpec

Aggressiveness = Annotated[float, Field(gt=0, le=1e9)]
Variant = Literal["I", "II"]
Update = Literal["max-loss", "prediction"]
TotalName = Literal["sum", "root", "one"]


class StepSpec(OnlineSpec):
    """The fields that `pa` and `mira` share."""

    C: Aggressiveness | None = None
    variant: Variant = "I"
    update: Update = "max-loss"
    costs: Costs = Field(default_factory=dict)
    total: TotalName = "sum"
    averaged: bool = True

    @field_validator("total")
    @classmethod
    def _of_a_prediction(cls, total: str, info: ValidationInfo) -> str:
        if total != "sum" and info.data.get("update") == "max-loss":
            raise ValueError('the labels with the largest loss need a sum of costs: use update "prediction"')
        return total

    def make(self, threads: int) -> "PassiveAggressive":
        del threads
        return PassiveAggressive(self)


class PassiveAggressive(Online):
    """Steps of at most `C`, or unbounded if `C` is None."""

    def __init__(self, spec: StepSpec) -> None:
        super().__init__(spec)
        self.spec = spec

    def rule(self, problem: Problem) -> Rule:
        spec = self.spec
        return rule_of(
            Margin.PASSIVE_SMOOTH if spec.variant == "II" else Margin.PASSIVE,
            inf if spec.C is None else spec.C,
            cost_vector(spec.costs, problem, self.dtype),
            averaged=spec.averaged,
            augmented=spec.update == "max-loss",
            total=Total[spec.total.upper()],
        )
