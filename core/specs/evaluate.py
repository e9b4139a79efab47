"""`evaluate`: versions of models on a labelled corpus."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from core.specs.parts import CorpusId, JobLimits, ModelReference, Seed

#: Every pair is compared: 16 versions are 120 pairs.
MAX_MODELS = 16


class EvaluateSpec(JobLimits):
    """Score versions on a corpus and, of each two, say whether they differ by more than chance.

    `resamples` of the sentences are drawn for the paired bootstrap of F1; its interval holds `confidence` of them.
    """

    kind: Literal["evaluate"]
    models: Annotated[list[ModelReference], Field(min_length=1, max_length=MAX_MODELS)]
    corpus: CorpusId
    resamples: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    confidence: Annotated[float, Field(ge=0.5, le=0.999)] = 0.95
    seed: Seed = 1

    @field_validator("models")
    @classmethod
    def _models_differ(cls, models: list[str]) -> list[str]:
        if len(set(models)) < len(models):
            raise ValueError("a model is named twice")
        return models
