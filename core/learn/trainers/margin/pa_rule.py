"""The smallest step that labels the sample correctly with a margin: `pa` and `mira` (Crammer et al. 2006).

    loss = score(y) + cost(y) - score(gold),   w += tau d,   d = phi(gold) - phi(y)
    PA-I: tau = min(C, loss / |d|^2)    PA-II: tau = loss / (|d|^2 + 1 / (2 C))    MIRA: tau = loss / |d|^2

Section 8 of the paper has two updates. `max-loss` uses the y with the greatest loss: decoding adds its cost to every
wrong label. `prediction` uses the y with the greatest score, so a correctly labelled sample causes no update.

MIRA with a C is PA. Weights are averaged.
"""

from math import inf
from typing import Annotated, Literal

from pydantic import Field

from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.margin.costs import Costs, cost_vector
from tagsmith.core.learn.trainers.margin.margin import Margin, Rule, rule_of
from tagsmith.core.learn.trainers.margin.online import Online, OnlineSpec

Aggressiveness = Annotated[float, Field(gt=0, le=1e9)]
Variant = Literal["I", "II"]
Update = Literal["max-loss", "prediction"]


class PassiveAggressive(Online):
    """Steps of at most `C`, or unbounded if `C` is None."""

    def __init__(
        self, spec: OnlineSpec, C: float | None, variant: Variant, update: Update, costs: Costs
    ) -> None:
        super().__init__(spec)
        self._limit = inf if C is None else C
        self._margin = Margin.PASSIVE_SMOOTH if variant == "II" else Margin.PASSIVE
        self._augmented = update == "max-loss"
        self._costs = costs

    def rule(self, problem: Problem) -> Rule:
        costs = cost_vector(self._costs, problem, self.dtype)
        return rule_of(self._margin, self._limit, costs, averaged=True, augmented=self._augmented)
