"""`mira`: the margin-infused relaxed algorithm (Crammer et al. 2006).

`passive_aggressive` has the update rule.
"""

from typing import Literal

from pydantic import ValidationInfo, field_validator

from tagsmith.core.learn.trainers.margin.passive_aggressive import StepSpec


class MiraSpec(StepSpec):
    """`C`, if given, caps a step according to `variant`; the other fields are the same as in PA."""

    kind: Literal["mira"] = "mira"

    @field_validator("variant")
    @classmethod
    def _smooths_a_cap(cls, variant: str, info: ValidationInfo) -> str:
        if variant == "II" and info.data.get("C", 1.0) is None:
            raise ValueError("the second variant smooths the cap: give C")
        return variant
