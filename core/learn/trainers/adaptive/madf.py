"""`madf`: SGD with lower learning rates for frequent features (He & Wang 2012, section 2.4).

Minimises sum of -log p(y | x) + (l2 / 2) |w|^2. `updates` has the update rule.
"""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from tagsmith.core.base import simd as v
from tagsmith.core.inference.chain import Floats
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.adaptive.adaptive import Adaptive, adaptive_bytes
from tagsmith.core.learn.trainers.adaptive.updates import AdaptivePlan, Frequencies
from tagsmith.core.learn.trainers.sgd.descent import DescentSpec
from tagsmith.core.learn.trainers.sgd.schedule import Schedule
from tagsmith.core.learn.trainers.sizes import Sizes
from tagsmith.core.learn.weights.pairs import gold_frequencies


class MadfSpec(DescentSpec):
    """`a` and `b` bound the scale of a feature's rate: `b` for the rarest, towards `a` for one at every token."""

    example: ClassVar[dict[str, Any]] = {"kind": "adf", "passes": 1}
    dense: ClassVar[bool] = True

    kind: Literal["madf"] = "madf"
    passes: Annotated[int, Field(ge=1, le=100_000)] = 15
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    a: Annotated[float, Field(ge=1e-9, le=1)] = 0.001
    b: Annotated[float, Field(ge=1e-9, le=1e3)] = 1.0
    schedule: Schedule = Schedule(kind="bottou")

    def make(self, threads: int) -> "Madf":
        del threads
        return Madf(self)

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        del threads
        # Plus one scale per weight.
        return adaptive_bytes(sizes, self.batch) + sizes.matrix + self.calibration_bytes(sizes)

    def held_bytes(self, sizes: Sizes) -> int:
        return 2 * sizes.matrix + 4 * 8 * sizes.rows


class Madf(Adaptive):
    """SGD with one rate scale per weight."""

    def __init__(self, spec: MadfSpec) -> None:
        super().__init__(spec, spec.l2)
        self.spec = spec
        self._scale_of: tuple[Problem, Floats] | None = None

    def _plan(self, problem: Problem, sequences: int) -> AdaptivePlan:
        return AdaptivePlan(
            kind=int(Frequencies.MADF),
            decay=self.l2 / sequences,
            window=1,
            alpha=1.0,
            beta=1.0,
            batch=self.spec.batch,
            sentences=problem.sentences,
            layout=problem.layout,
        )

    def _scale(self, problem: Problem) -> Floats:
        """Compute B of every weight, once per problem."""
        if self._scale_of is None or self._scale_of[0] is not problem:
            # In place, because these are the largest arrays of the trainer.
            share = gold_frequencies(problem)
            share /= max(problem.words, 1)
            # The sum of the values may be negative or greater than one per token.
            np.clip(share, 0.0, 1.0, out=share)
            share *= 1 / self.spec.a - 1 / self.spec.b
            share += 1 / self.spec.b
            scale = v.zeros(len(share) * problem.width, self.dtype)
            scale.reshape(-1, problem.width)[:, : len(problem.labels)] = np.reciprocal(share, out=share)
            self._scale_of = (problem, scale)
        return self._scale_of[1]
