"""`sgd`: stochastic gradient descent with an L2 penalty.

Minimises sum of -log p(y | x) + (l2 / 2) |w|^2. The weight decay of each update changes a single scale (see `updates`).
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tagsmith.core.learn.trainers.sgd.descent import Descent, DescentSpec
from tagsmith.core.learn.trainers.sgd.updates import Penalty


class SgdSpec(DescentSpec):
    """`l2` is the weight of |w|^2 / 2 in the objective."""

    dense: ClassVar[bool] = True
    instead: ClassVar[Mapping[str, str]] = {"l1": "For an L1 penalty use the trainer `sgd-l1`."}

    kind: Literal["sgd"] = "sgd"
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0

    def make(self, threads: int) -> "Sgd":
        del threads
        return Sgd(self)


class Sgd(Descent):
    """SGD with weight decay."""

    rule: Penalty = Penalty.DECAY

    def __init__(self, spec: SgdSpec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l2 = spec.l2
