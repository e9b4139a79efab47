"""`sgd-l1`: stochastic gradient descent with an L1 penalty (Tsuruoka, Tsujii & Ananiadou 2009).

Optimises sum of -log p(y | x) + l1 |w|_1. The three rules of the penalty, and how each is paid lazily, are told in
`updates`; `line_search: "heuristic"` is Zhou, Qiu & Huang 2011, section 3.5, as told in `line_search`.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from core.learn.descent import Descent, DescentSpec
from core.learn.updates import CLIPPING, CUMULATIVE, NAIVE

_MODES = {"cumulative": CUMULATIVE, "clipping": CLIPPING, "naive": NAIVE}


class SgdL1Spec(DescentSpec):
    """`l1` is the weight of |w| in the objective; `penalty`, how it is applied; `line_search`, how rates are chosen.

    `sufficient` is the part of what the slope promises that a rate must bring to be taken by the line search.
    """

    kind: Literal["sgd-l1"] = "sgd-l1"
    l1: Annotated[float, Field(ge=0, le=1e6)] = 0.5
    penalty: Literal["cumulative", "clipping", "naive"] = "cumulative"
    line_search: Literal["none", "heuristic"] = "none"
    sufficient: Annotated[float, Field(ge=0, lt=1)] = 0.5

    @model_validator(mode="after")
    def _searchable(self) -> "SgdL1Spec":
        if self.line_search == "heuristic" and (self.batch > 1 or self.penalty == "naive"):
            raise ValueError(
                'line_search "heuristic" looks at one sample and its features: batch 1, penalty not naive'
            )
        return self


class SgdL1(Descent):
    """See the module."""

    def __init__(self, spec: SgdL1Spec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l1 = spec.l1
        self.mode = _MODES[spec.penalty]
        if spec.line_search == "heuristic":
            self.sufficient = spec.sufficient
