"""`lbfgs`: limited-memory BFGS for an L2 penalty (Nocedal 1980).

`quasi_newton` has the iteration.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from tagsmith.core.learn.trainers.batch.training import QuasiNewton, QuasiNewtonSpec, Strength


class LbfgsSpec(QuasiNewtonSpec):
    """`l2` is the weight of |w|^2 / 2 in the objective."""

    example: ClassVar[dict[str, Any]] = {"kind": "lbfgs", "passes": 3}
    dense: ClassVar[bool] = True
    instead: ClassVar[Mapping[str, str]] = {"l1": "For an L1 penalty use the trainer `owlqn`."}

    kind: Literal["lbfgs"] = "lbfgs"
    l2: Strength = 1.0

    def make(self, threads: int) -> QuasiNewton:
        return QuasiNewton(self, 0.0, self.l2, threads)
