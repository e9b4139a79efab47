"""Policies of models: what may be promoted, and which versions are kept."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from tagsmith.wire.base import WireRequest, WireResponse
from tagsmith.wire.names import DEFAULT_ALIAS, CorpusReference, Name

Metric = Literal["f1", "accuracy", "precision", "recall", "uas", "las"]
Percent = Annotated[float, Field(ge=0, le=100)]

#: A bare name refers to the newest version if there is no champion, so at least that one is kept.
KeepLast = Annotated[int, Field(ge=1, le=100_000)]
KeepRollbacks = Annotated[int, Field(ge=0, le=10_000)]
DEFAULT_KEEP_LAST = 10
DEFAULT_KEEP_ROLLBACKS = 3


class PromotionPolicy(WireRequest):
    """When an alias may move to a version, judged by scores that jobs have stored. Scores are percentages."""

    model_config = ConfigDict(from_attributes=True)

    aliases: list[Name] = Field(
        [DEFAULT_ALIAS], min_length=1, max_length=64, description="The aliases that it guards."
    )
    metric: Metric = Field("f1", description="The score. Of parsers, `uas` or `las`.")
    corpus: CorpusReference | None = Field(
        None, description="The corpus of the scores; null for the dev set that each version was trained with."
    )
    minimum: Percent | None = Field(None, description="The lowest score allowed.")
    max_drop: Percent | None = Field(
        None, description="How far the score may be below that of the version that the alias points to."
    )
    max_type_drop: Percent | None = Field(
        None, description="The same for the F1 of each type of span, or of each relation."
    )

    @model_validator(mode="after")
    def _check_rules(self) -> "PromotionPolicy":
        drops = self.max_drop is not None or self.max_type_drop is not None
        if self.minimum is None and not drops:
            raise ValueError("Give `minimum`, `max_drop` or `max_type_drop`.")
        if drops and self.corpus is None:
            raise ValueError("A drop needs a corpus on which all versions are evaluated. Give `corpus`.")
        return self


class RetentionPolicy(WireRequest):
    """Which versions are kept, besides those that an alias points to and those that a job needs."""

    model_config = ConfigDict(from_attributes=True)

    keep_last: KeepLast = Field(DEFAULT_KEEP_LAST, description="Number of newest versions to keep.")
    keep_rollbacks: KeepRollbacks = Field(
        DEFAULT_KEEP_ROLLBACKS, description="Number of rollbacks of each alias that must stay possible."
    )


class NewPolicy(WireRequest):
    """The whole policy of a model."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"promotion": {"minimum": 90.0}, "retention": {"keep_last": 10, "keep_rollbacks": 3}}
            ]
        }
    )

    promotion: PromotionPolicy | None = Field(None, description="Null allows every promotion.")
    retention: RetentionPolicy | None = Field(None, description="Null keeps every version.")

    @model_validator(mode="after")
    def _require_a_rule(self) -> "NewPolicy":
        if self.promotion is None and self.retention is None:
            raise ValueError("Give `promotion`, `retention` or both. DELETE removes the policy.")
        return self


class Policy(WireResponse):
    """The policy of a model."""

    model: str
    promotion: PromotionPolicy | None
    retention: RetentionPolicy | None
    seq: int = Field(description="Number of its last change; also its ETag.")
    updated_at: datetime


class RemovedVersion(WireResponse):
    """A version that retention would remove."""

    version: int
    size_bytes: int
    created_at: datetime


class KeptVersion(WireResponse):
    """A version that retention keeps."""

    version: int
    because: list[str] = Field(description="Every reason to keep it.")


class RetentionPlan(WireResponse):
    """What retention would do to each version of a model."""

    model: str
    keep_last: int
    keep_rollbacks: int
    in_force: bool = Field(description="Whether the policy of the model has exactly these rules.")
    size_bytes: int = Field(description="Total size of the versions to remove.")
    remove: list[RemovedVersion] = Field(description="Oldest first.")
    keep: list[KeptVersion] = Field(description="Newest first.")
