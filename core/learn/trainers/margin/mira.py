"""`mira`: the margin-infused relaxed algorithm (Crammer et al. 2006).

`passive_aggressive` has the update rule.
"""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from tagsmith.core.learn.trainers.margin.costs import Costs
from tagsmith.core.learn.trainers.margin.online import OnlineSpec
from tagsmith.core.learn.trainers.margin.pa_rule import (
    Aggressiveness,
    PassiveAggressive,
    Update,
    Variant,
)


class MiraSpec(OnlineSpec):
    """`C`, if given, caps a step according to `variant`; `update` and `costs` are the same as in PA."""

    kind: Literal["mira"] = "mira"
    C: Aggressiveness | None = None
    variant: Variant = "I"
    update: Update = "max-loss"
    costs: Costs = Field(default_factory=dict)

    @field_validator("variant")
    @classmethod
    def _needs_a_cap(cls, variant: str, info: ValidationInfo) -> str:
        if variant == "II" and info.data.get("C", 1.0) is None:
            raise ValueError("Variant II needs a finite `C`. Set `C`.")
        return variant

    def make(self, threads: int) -> PassiveAggressive:
        del threads
        return PassiveAggressive(self, self.C, self.variant, self.update, self.costs)
