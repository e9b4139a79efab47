"""`arow`: adaptive regularization of weight vectors (Crammer, Kulesza & Dredze 2009).

Every weight has a variance. It starts at 1 and falls with each update that uses the weight, as in `cw`. The step
balances the loss against the change of the weights, so mislabelled samples do less harm.
"""

from typing import Annotated, Literal

from pydantic import Field

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.margin.costs import cost_vector
from tagsmith.core.learn.trainers.margin.margin import Margin, Rule, rule_of
from tagsmith.core.learn.trainers.margin.online import Online, OnlineSpec


class ArowSpec(OnlineSpec):
    """`r` weighs the old weights against the new sample: the larger `r`, the smaller the steps."""

    kind: Literal["arow"] = "arow"
    r: Annotated[float, Field(ge=1e-9, le=1e9)] = 1.0

    def make(self, threads: int) -> "Arow":
        del threads
        return Arow(self)


class Arow(Online):
    """Regularized steps."""

    def __init__(self, spec: ArowSpec) -> None:
        super().__init__(spec)
        self.spec = spec

    def rule(self, problem: Problem) -> Rule:
        return rule_of(Margin.REGULARIZED, self.spec.r, cost_vector({}, problem, self.dtype))
