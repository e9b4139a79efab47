"""`dca`: dual coordinate ascent (Martins et al. 2010; He & Wang 2012, section 2.2).

Each sample sets its own rate: w -= min(1 / l2, L / |grad L|^2) grad L, where L is the loss of a CRF or of a max-margin
model (cost-augmented, with Hamming or given costs). Weights are averaged.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.margin.costs import Costs, cost_vector
from tagsmith.core.learn.trainers.margin.margin import Margin, Rule, rule_of
from tagsmith.core.learn.trainers.margin.online import Online, OnlineSpec


class DcaSpec(OnlineSpec):
    """`l2` is the weight of |w|^2 / 2, whose inverse caps a step; `loss` selects the loss of a CRF or of an SVM."""

    dense: ClassVar[bool] = True

    kind: Literal["dca"] = "dca"
    l2: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    loss: Literal["crf", "svm"] = "crf"
    costs: Costs = Field(default_factory=dict)

    def make(self, threads: int) -> "Dca":
        del threads
        return Dca(self)


class Dca(Online):
    """Steps of at most 1 / l2."""

    def __init__(self, spec: DcaSpec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l2 = spec.l2

    def rule(self, problem: Problem) -> Rule:
        costs = cost_vector(self.spec.costs, problem, self.dtype)
        if self.spec.loss == "crf":
            return rule_of(Margin.ASCENT, 1.0 / self.spec.l2, np.empty(0, self.dtype), averaged=True)
        return rule_of(Margin.ASCENT_MARGIN, 1.0 / self.spec.l2, costs, averaged=True)
