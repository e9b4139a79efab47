"""`pa`: passive-aggressive learning (Crammer et al. 2006).

`passive_aggressive` has the update rule.
"""

from typing import Literal

from pydantic import Field

from tagsmith.core.learn.trainers.margin.costs import Costs
from tagsmith.core.learn.trainers.margin.online import OnlineSpec
from tagsmith.core.learn.trainers.margin.pa_rule import (
    Aggressiveness,
    PassiveAggressive,
    Update,
    Variant,
)


class PassiveAggressiveSpec(OnlineSpec):
    """`C` caps a step; `variant` is PA-I or PA-II; `update` selects y; `costs` sets gold label costs other than 1."""

    kind: Literal["pa"] = "pa"
    C: Aggressiveness = 0.01
    variant: Variant = "I"
    update: Update = "max-loss"
    costs: Costs = Field(default_factory=dict)

    def make(self, threads: int) -> PassiveAggressive:
        del threads
        return PassiveAggressive(self, self.C, self.variant, self.update, self.costs)
