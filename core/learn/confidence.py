"""`cw` and `arow`: learners that know how sure they are of each weight (Dredze et al. 2008; Crammer et al. 2009).

Every weight has a variance, 1 at the start, that falls with each update that uses it; rare features move far, frequent
ones little. The direction is phi(gold) - phi(the labels that violate the margin most).
"""

from statistics import NormalDist
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from core.learn.costs import cost_vector
from core.learn.margin import CONFIDENCE, REGULARIZED, Rule
from core.learn.online import Online, OnlineSpec
from core.learn.problem import Problem


class CwSpec(OnlineSpec):
    """`confidence` is the probability with which a sample must be right after its update."""

    kind: Literal["cw"] = "cw"
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.7


class ArowSpec(OnlineSpec):
    """`r` weighs the old weights against the new sample: the larger, the smaller a step."""

    kind: Literal["arow"] = "arow"
    r: Annotated[float, Field(ge=1e-9, le=1e9)] = 1.0


class Confidence(Online):
    """See the module."""

    def __init__(self, spec: CwSpec | ArowSpec) -> None:
        super().__init__(spec)
        self.spec = spec

    def rule(self, problem: Problem) -> Rule:
        costs = cost_vector({}, problem, self.dtype)
        if isinstance(self.spec, ArowSpec):
            return Rule(REGULARIZED, self.spec.r, False, costs)
        phi = NormalDist().inv_cdf(self.spec.confidence)
        return Rule(CONFIDENCE, phi, False, np.asarray(costs))
