"""`dca`: dual coordinate ascent (Martins et al. 2010; He & Wang 2012, section 2.2).

Each sample sets its own rate: w -= min(1 / l2, L / |grad L|^2) grad L, with L the loss of a CRF or of a max-margin
model (cost-augmented, Hamming or as given). Weights are averaged.
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from core.learn.costs import Costs, cost_vector
from core.learn.margin import ASCENT, ASCENT_MARGIN, Rule
from core.learn.online import Online, OnlineSpec
from core.learn.problem import Problem


class DcaSpec(OnlineSpec):
    """`l2` is the weight of |w|^2 / 2, whose inverse caps a step; `loss` is that of a CRF or of an SVM."""

    kind: Literal["dca"] = "dca"
    l2: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    loss: Literal["crf", "svm"] = "crf"
    costs: Costs = Field(default_factory=dict)


class Dca(Online):
    """See the module."""

    def __init__(self, spec: DcaSpec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l2 = spec.l2

    def rule(self, problem: Problem) -> Rule:
        costs = cost_vector(self.spec.costs, problem, self.dtype)
        if self.spec.loss == "crf":
            return Rule(ASCENT, 1.0 / self.spec.l2, True, np.empty(0, self.dtype))
        return Rule(ASCENT_MARGIN, 1.0 / self.spec.l2, True, costs)
