"""`mira`: the margin-infused relaxed algorithm (Crammer et al. 2006).

`pa_rule` has the update rule.
"""

from typing import Literal

from pydantic import ValidationInfo, field_validator

from tagsmith.core.learn.trainers.margin.pa_rule import StepSpec


class MiraSpec(StepSpec):
    """`C`, if given, caps a step according to `variant`; the other fields are the same as in PA."""

    kind: Literal["mira"] = "mira"

    @field_validator("variant")
    @classmethod
    def _needs_a_cap(cls, variant: str, info: ValidationInfo) -> str:
        if variant == "II" and info.data.get("C", 1.0) is None:
            raise ValueError("Variant II needs a finite `C`. Set `C`.")
        return variant
