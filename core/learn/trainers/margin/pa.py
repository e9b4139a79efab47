"""`pa`: passive-aggressive learning (Crammer et al. 2006).

`pa_rule` has the update rule.
"""

from typing import Literal

from tagsmith.core.learn.trainers.margin.pa_rule import Aggressiveness, StepSpec


class PassiveAggressiveSpec(StepSpec):
    """`C` caps a step; `variant` is PA-I or PA-II; `update` selects y; `costs` sets gold label costs other than 1."""

    kind: Literal["pa"] = "pa"
    C: Aggressiveness = 0.01
