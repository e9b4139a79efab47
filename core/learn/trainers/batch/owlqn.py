"""`owlqn`: OWL-QN for L1 or the elastic net (Andrew & Gao 2007).

`quasi_newton` has the iteration.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from tagsmith.core.learn.trainers.batch.training import REVIEW, QuasiNewton, QuasiNewtonSpec, Strength
from tagsmith.core.learn.trainers.sizes import Sizes


class OwlqnSpec(QuasiNewtonSpec):
    """`l1` is the weight of |w|, `l2` that of |w|^2 / 2."""

    # The run of `two-stage` also compiles the kernels of this trainer.
    example: ClassVar[dict[str, Any]] = {
        "kind": "two-stage",
        "passes": 2,
        "first": {"kind": "sgd-l1", "passes": 1, "line_search": "heuristic"},
    }

    kind: Literal["owlqn"] = "owlqn"
    l1: Annotated[float, Field(gt=0, le=1e6)] = 0.5
    l2: Strength = 0.0

    def make(self, threads: int) -> QuasiNewton:
        return QuasiNewton(self, self.l1, self.l2, threads)

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        # Once the working set shrinks: two copies of its cells plus an int64 index per cell. The working vectors become
        # shorter at the same time, which frees more than the rows and the layout of the new set need.
        fewer = 0 if self.passes <= REVIEW else (2 * 4 + 8) * sizes.cells
        return super().state_bytes(sizes, threads) + fewer
