"""`pa` and `mira`: the smallest step that would have got the sample right by a margin (Crammer et al. 2006).

    loss = score(y) + cost(y) - score(gold),   w += tau d,   d = phi(gold) - phi(y)
    PA-I: tau = min(C, loss / |d|^2)    PA-II: tau = loss / (|d|^2 + 1 / (2 C))    MIRA: tau = loss / |d|^2

Of the two updates of their section 8, `max-loss` takes the y of greatest loss: decoding adds to every wrong label what
it costs. `prediction` takes the y of greatest score, so a sample that is labelled right moves nothing.

MIRA with a C is PA. Weights are averaged.
"""

from math import inf
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from core.learn.costs import Costs, cost_vector
from core.learn.margin import PASSIVE, PASSIVE_SMOOTH, Rule
from core.learn.online import Online, OnlineSpec
from core.learn.problem import Problem

Aggressiveness = Annotated[float, Field(gt=0, le=1e9)]
Update = Literal["max-loss", "prediction"]


class PassiveAggressiveSpec(OnlineSpec):
    """`C` caps a step; `variant` is PA-I or PA-II; `update` says what y is; `costs` weigh gold labels other than 1."""

    kind: Literal["pa"] = "pa"
    C: Aggressiveness = 0.01
    variant: Literal["I", "II"] = "I"
    update: Update = "max-loss"
    costs: Costs = Field(default_factory=dict)


class MiraSpec(OnlineSpec):
    """`C` caps a step, if given, as `variant` says; `update` and `costs` as with PA."""

    kind: Literal["mira"] = "mira"
    C: Aggressiveness | None = None
    variant: Literal["I", "II"] = "I"
    update: Update = "max-loss"
    costs: Costs = Field(default_factory=dict)

    @field_validator("variant")
    @classmethod
    def _smooths_a_cap(cls, variant: str, info: ValidationInfo) -> str:
        if variant == "II" and info.data.get("C", 1.0) is None:
            raise ValueError("the second variant smooths the cap: give C")
        return variant


class PassiveAggressive(Online):
    """See the module."""

    def __init__(self, spec: PassiveAggressiveSpec | MiraSpec) -> None:
        super().__init__(spec)
        self.spec = spec

    def rule(self, problem: Problem) -> Rule:
        limit = inf if self.spec.C is None else self.spec.C
        costs = cost_vector(self.spec.costs, problem, self.dtype)
        kind = PASSIVE_SMOOTH if self.spec.variant == "II" else PASSIVE
        return Rule(kind, limit, True, costs, self.spec.update == "max-loss")
