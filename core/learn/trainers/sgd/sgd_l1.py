"""`sgd-l1`: stochastic gradient descent with an L1 penalty (Tsuruoka, Tsujii & Ananiadou 2009).

Minimises sum of -log p(y | x) + l1 |w|_1. `updates` has the three penalty rules and how each is applied lazily.
`line_search` has the search for rates (Zhou, Qiu & Huang 2011, section 3.5).
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tagsmith.core.learn.trainers.sgd.descent import Descent, DescentSpec
from tagsmith.core.learn.trainers.sgd.updates import Penalty
from tagsmith.core.learn.trainers.sizes import Sizes


class SgdL1Spec(DescentSpec):
    """`l1` is the weight of |w| in the objective; `penalty`, how it is applied; `line_search`, how rates are chosen.

    `sufficient` is the fraction of the predicted decrease that a rate must achieve to be accepted by the line search.
    """

    kind: Literal["sgd-l1"] = "sgd-l1"
    l1: Annotated[float, Field(ge=0, le=1e6)] = 0.5
    penalty: Literal["cumulative", "clipping", "naive"] = "cumulative"
    line_search: Literal["none", "heuristic"] = "none"
    sufficient: Annotated[float, Field(ge=0, lt=1)] = 0.5

    @model_validator(mode="after")
    def _searchable(self) -> "SgdL1Spec":
        if self.line_search == "heuristic" and (self.batch > 1 or self.penalty == "naive"):
            raise ValueError('`line_search` "heuristic" needs `batch` 1 and a `penalty` other than "naive".')
        return self

    def make(self, threads: int) -> "SgdL1":
        del threads
        return SgdL1(self)

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        # The line search stores the last update that used each row.
        searched = 8 * sizes.rows if self.line_search == "heuristic" else 0
        return super().state_bytes(sizes, threads) + searched


class SgdL1(Descent):
    """SGD with the L1 penalty rule of the spec."""

    def __init__(self, spec: SgdL1Spec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l1 = spec.l1
        self.rule = Penalty[spec.penalty.upper()]
        if spec.line_search == "heuristic":
            self.sufficient = spec.sufficient
