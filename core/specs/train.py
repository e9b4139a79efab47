"""`train`: one version of a model."""

from typing import Literal

from pydantic import model_validator

from core.errors import Fault, Invalid
from core.specs.parts import CorpusId, Dev, JobLimits, Learning, ModelReference, Name


class TrainSpec(JobLimits, Learning):
    """Train one version of a model.

    `init` names a version to start from (`name`, `name@alias` or `name:3`). `promote` names an alias that shall stand
    for the version.
    """

    kind: Literal["train"]
    model: Name
    corpus: CorpusId
    dev: Dev | None = None
    promote: Name | None = None
    init: ModelReference | None = None

    @model_validator(mode="after")
    def _patience_has_scores(self) -> "TrainSpec":
        if self.stop.keeps_best and self.dev is None:
            fault = Fault(
                "patience waits for a better score on dev, and there is no dev", pointer="/stop/patience"
            )
            raise Invalid("The train job is not valid", [fault], code="invalid_spec")
        return self
