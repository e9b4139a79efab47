"""`sgd`: stochastic gradient descent with an L2 penalty.

Optimises sum of -log p(y | x) + (l2 / 2) |w|^2. The decay of all weights at each update is one scale (see `updates`).
"""

from typing import Annotated, Literal

from pydantic import Field

from core.learn.descent import Descent, DescentSpec
from core.learn.updates import DECAY


class SgdSpec(DescentSpec):
    """`l2` is the weight of |w|^2 / 2 in the objective."""

    kind: Literal["sgd"] = "sgd"
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0


class Sgd(Descent):
    """See the module."""

    mode = DECAY

    def __init__(self, spec: SgdSpec) -> None:
        super().__init__(spec)
        self.spec = spec
        self.l2 = spec.l2
