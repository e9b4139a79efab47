"""Shapes of policies on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from app.body import Body
from app.params import Out
from core.specs.parts import CorpusId, Name
from core.store.references import DEFAULT_ALIAS

Metric = Literal["f1", "accuracy", "precision", "recall"]
Percent = Annotated[float, Field(ge=0, le=100)]

#: The newest is what a bare name means where there is no champion: it always stays.
KeepLast = Annotated[int, Field(ge=1, le=100_000)]
KeepRollbacks = Annotated[int, Field(ge=0, le=10_000)]
DEFAULT_KEEP_LAST = 10
DEFAULT_KEEP_ROLLBACKS = 3


class Promotion(Body):
    """When an alias may be moved to a version, by scores that jobs have stored; percentages."""

    model_config = ConfigDict(from_attributes=True)

    aliases: list[Name] = Field([DEFAULT_ALIAS], min_length=1, max_length=64, description="Which it guards.")
    metric: Metric = "f1"
    corpus: CorpusId | None = Field(
        None, description="What scores are of; null is the dev set that each version was trained with."
    )
    minimum: Percent | None = Field(None, description="The least score.")
    max_drop: Percent | None = Field(
        None, description="How far the score may be below that of the version that the alias stands for."
    )
    max_type_drop: Percent | None = Field(None, description="The same for the F1 of each type of span.")

    @model_validator(mode="after")
    def _rules_can_be_judged(self) -> "Promotion":
        drops = self.max_drop is not None or self.max_type_drop is not None
        if self.minimum is None and not drops:
            raise ValueError("give a minimum, a max_drop or a max_type_drop")
        if drops and self.corpus is None:
            raise ValueError("a drop is one on a corpus that all versions are evaluated on: give corpus")
        return self


class Retention(Body):
    """Which versions are kept, beside those that an alias stands for and those that a job needs."""

    model_config = ConfigDict(from_attributes=True)

    keep_last: KeepLast = Field(DEFAULT_KEEP_LAST, description="So many of the newest.")
    keep_rollbacks: KeepRollbacks = Field(
        DEFAULT_KEEP_ROLLBACKS, description="What so many rollbacks of each alias lead to."
    )


class NewPolicy(Body):
    """The whole policy of a model."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"promotion": {"minimum": 90.0}, "retention": {"keep_last": 10, "keep_rollbacks": 3}}
            ]
        }
    )

    promotion: Promotion | None = Field(None, description="Null lets every version be promoted.")
    retention: Retention | None = Field(None, description="Null keeps every version.")

    @model_validator(mode="after")
    def _says_something(self) -> "NewPolicy":
        if self.promotion is None and self.retention is None:
            raise ValueError("give promotion, retention or both; DELETE removes the policy")
        return self


class Policy(Out):
    """The policy of a model."""

    model: str
    promotion: Promotion | None
    retention: Retention | None
    seq: int = Field(description="Counts its changes; also its ETag.")
    updated_at: datetime


class RemovedVersion(Out):
    """A version that nothing keeps."""

    version: int
    size_bytes: int
    created_at: datetime


class KeptVersion(Out):
    """A version that is kept."""

    version: int
    because: list[str] = Field(description="Everything that keeps it.")


class RetentionPlan(Out):
    """What would become of each version of a model."""

    model: str
    keep_last: int
    keep_rollbacks: int
    in_force: bool = Field(description="Whether the policy says just this, so that it will be done.")
    size_bytes: int = Field(description="Of all that would be removed.")
    remove: list[RemovedVersion] = Field(description="The oldest first.")
    keep: list[KeptVersion] = Field(description="The newest first.")
