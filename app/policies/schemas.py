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


class NewPolicy(Body):
    """The whole policy of a model."""

    promotion: Promotion


class Policy(Out):
    """The policy of a model."""

    model: str
    promotion: Promotion | None
    seq: int = Field(description="Counts its changes; also its ETag.")
    updated_at: datetime
