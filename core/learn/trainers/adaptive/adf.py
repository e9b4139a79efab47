"""`adf`: SGD whose learning rates decay faster for frequent features (Sun, Li, Wang & Lu 2014, section 3).

Minimises sum of -log p(y | x) + (l2 / 2) |w|^2. `updates` has the update rule.
"""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from tagsmith.core.inference.chain import Floats
from tagsmith.core.learn.problem.problem import Problem
from tagsmith.core.learn.trainers.adaptive.adaptive import Adaptive, adaptive_bytes
from tagsmith.core.learn.trainers.adaptive.updates import AdaptivePlan, Frequencies
from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.sgd.descent import DescentSpec, sample_bytes
from tagsmith.core.learn.trainers.sgd.schedule import Schedule
from tagsmith.core.learn.trainers.sizes import Sizes

Share = Annotated[float, Field(gt=0, le=1)]


class AdfSpec(TrainerSpec):
    """`c` is the initial rate of every feature; `alpha` and `beta` bound its decay per `window` (a tenth of a pass)."""

    example: ClassVar[dict[str, Any]] = {"kind": "adf", "passes": 1}
    dense: ClassVar[bool] = True

    kind: Literal["adf"] = "adf"
    passes: Annotated[int, Field(ge=1, le=100_000)] = 15
    l2: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    c: Annotated[float, Field(gt=0, le=1e6)] | Literal["auto"] = "auto"
    alpha: Share = 0.995
    beta: Share = 0.6
    window: Annotated[int, Field(ge=1, le=2**40)] | None = None
    batch: Annotated[int, Field(ge=1, le=100_000)] = 1

    @model_validator(mode="after")
    def _ordered(self) -> "AdfSpec":
        if self.beta > self.alpha:
            raise ValueError(
                "`beta` (decay of features in every sample) must not exceed `alpha` (decay of absent features)."
            )
        return self

    def make(self, threads: int) -> "Adf":
        del threads
        return Adf(self)

    def state_bytes(self, sizes: Sizes, threads: int) -> int:
        del threads
        return adaptive_bytes(sizes, self.batch) + self.calibration_bytes(sizes)

    def calibration_bytes(self, sizes: Sizes) -> int:
        return 0 if self.c != "auto" else sizes.matrix + 4 * sizes.rows + sample_bytes(sizes)

    def held_bytes(self, sizes: Sizes) -> int:
        return sizes.matrix + 4 * sizes.rows


class Adf(Adaptive):
    """SGD with one rate per row."""

    def __init__(self, spec: AdfSpec) -> None:
        schedule = Schedule(kind="inverse", eta0=spec.c)
        shared = DescentSpec(kind=spec.kind, passes=spec.passes, schedule=schedule, batch=spec.batch)
        super().__init__(shared, spec.l2)
        self.spec = spec

    def _plan(self, problem: Problem, sequences: int) -> AdaptivePlan:
        window = self.spec.window or max(1, problem.sentences // 10)
        return AdaptivePlan(
            kind=int(Frequencies.ADF),
            decay=self.l2 / sequences,
            window=max(1, window // self.spec.batch),
            alpha=self.spec.alpha,
            beta=self.spec.beta,
            batch=self.spec.batch,
            sentences=problem.sentences,
            layout=problem.layout,
        )

    def _scale(self, problem: Problem) -> Floats:
        del problem
        return np.empty(0, self.dtype)
