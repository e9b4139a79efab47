"""The spec of a run: features, trainer, seed, threads and stopping. Corpora and names belong to the job specs."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from tagsmith.core.base.spec import Spec
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.run.stopping import PatienceStop, Stop
from tagsmith.core.learn.trainers.registry import AnyTrainerSpec
from tagsmith.core.learn.trainers.sgd.sgd_l1 import SgdL1Spec

Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Learning(Spec):
    """How to learn from a corpus. Every run of a trainer uses these fields, in any kind of job.

    `objective: "exact"` computes the objective over the whole corpus after each pass, for trainers that only estimate
    it.
    """

    features: FeatureSpec = FeatureSpec()
    trainer: AnyTrainerSpec = SgdL1Spec()
    seed: Seed = 1
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    stop: Stop = PatienceStop()
    objective: Literal["estimate", "exact"] = "estimate"

    @field_validator("threads")
    @classmethod
    def _check_threads(cls, threads: int, info: ValidationInfo) -> int:
        trainer = info.data.get("trainer")
        if threads > 1 and trainer is not None and not trainer.uses_threads:
            raise ValueError(f"{trainer.kind} uses one thread. Set threads to 1.")
        return threads
