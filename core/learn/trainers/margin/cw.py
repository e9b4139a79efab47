"""`cw`: confidence-weighted learning (Dredze, Crammer & Pereira 2008).

Every weight has a variance. It starts at 1 and falls with each update that uses the weight, so rare features take large
steps and frequent features small ones. The direction is phi(gold) - phi(the labels that violate the margin most).
"""

from statistics import NormalDist
from typing import Annotated, Literal

from pydantic import Field

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.margin.costs import cost_vector
from tagsmith.core.learn.trainers.margin.margin import Margin, Rule, rule_of
from tagsmith.core.learn.trainers.margin.online import Online, OnlineSpec


class CwSpec(OnlineSpec):
    """`confidence` is the probability with which a sample must be labelled correctly after its update."""

    kind: Literal["cw"] = "cw"
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.7

    def make(self, threads: int) -> "Cw":
        del threads
        return Cw(self)


class Cw(Online):
    """Steps that reach the required confidence."""

    def __init__(self, spec: CwSpec) -> None:
        super().__init__(spec)
        self.spec = spec

    def rule(self, problem: Problem) -> Rule:
        phi = NormalDist().inv_cdf(self.spec.confidence)
        return rule_of(Margin.CONFIDENCE, phi, cost_vector({}, problem, self.dtype))
