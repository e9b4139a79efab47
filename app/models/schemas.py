"""Shapes of models, versions and aliases on the wire."""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from app.body import Body
from app.params import Out
from core.model.difference import WeightDifference


class Model(Out):
    """A name under which versions are numbered."""

    name: str
    latest: int | None = Field(description="The newest version, null when all were deleted.")
    version_count: int = Field(validation_alias="versions")
    aliases: dict[str, int] = Field(description="Which version each alias stands for.")
    created_at: datetime


class Version(Out):
    """One trained version; it never changes."""

    model: str
    version: int
    objective: float | None = Field(description="Exact, at the end of training.")
    active_features: int
    train_seconds: float = Field(description="Optimisation only.")
    metrics: dict[str, Any]
    trainer: dict[str, Any]
    spec: dict[str, Any]
    corpus: str | None
    size_bytes: int
    sha256: str
    seed: int
    code_version: str
    job_id: str | None
    created_at: datetime


class Template(Out):
    """What a template has in a version."""

    name: str
    edge: bool = Field(description="Whether its features are joined with the pair of labels.")
    kept: bool = Field(description="Whether the version has features of it, and computes it when tagging.")
    norm: float = Field(description="L2 norm of its weights.")
    active_features: int = Field(description="Weights that are not zero.")
    attributes: int = Field(description="What these weights are of: values of the template.")
    size_bytes: int = Field(description="Its part of the model file, without vocabularies and empty cells.")
    gain: float | None = Field(None, description="In bits, where templates were chosen by information gain.")


class Selection(Out):
    """How a trainer came to the templates that it kept."""

    path: list[dict[str, Any]] = Field(description="Which templates were kept, pass by pass.")
    peak_instantiated: int | None = Field(description="Most features that had a place in memory at one time.")
    instantiated_by_pass: list[int]


class Templates(Out):
    """The templates of a version in the order of the spec, those dropped last, and how they were selected."""

    data: list[Template]
    next_cursor: str | None = None
    selection: Selection | None = Field(description="Null when the trainer selects no templates.")


class MetricChange(Out):
    """A figure of two versions; null where a version has none."""

    name: str
    base: float | None
    head: float | None
    change: float | None


class SpecChange(Out):
    """A place of the spec where two versions differ; null where a spec has nothing."""

    pointer: str
    base: Any
    head: Any


class Comparison(Out):
    """All that differs between two versions of a model."""

    model: str
    base: int
    head: int
    metrics: list[MetricChange]
    spec: list[SpecChange]
    labels_added: list[str]
    labels_removed: list[str]
    weights: WeightDifference


class Alias(Out):
    """Where an alias points."""

    model: str
    alias: str
    version: int
    seq: int = Field(description="Counts its moves; also its ETag.")
    updated_at: datetime


class Move(Out):
    """One move of an alias."""

    seq: int
    action: str = Field(description="`move` or `rollback`.")
    from_version: int | None
    to_version: int
    to_seq: int | None = Field(description="Of a rollback: the move after which it stood as it does again.")
    actor: str | None
    reason: str | None
    request_id: str | None
    forced: str | None = Field(description="Of a move that was forced: what the policy has against it.")
    at: datetime


class AliasMove(Body):
    """Where to point an alias, and why."""

    version: int = Field(ge=1, le=2**31 - 1)
    force: bool = Field(False, description="Move it against the policy of the model; needs a reason.")
    reason: str | None = Field(None, max_length=1000, validate_default=True)

    @field_validator("reason")
    @classmethod
    def _force_has_a_reason(cls, reason: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("force") and not (reason or "").strip():
            raise ValueError("a move that is forced needs a reason")
        return reason


def _point(value: Any) -> Any:
    """Read a point of history: the number of a move, or a time with its zone."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("must be the number of a move, or a time such as 2026-01-31T08:00:00Z")  # noqa: TRY004  # pydantic takes no other
    if isinstance(value, int):
        if not 1 <= value < 2**31:
            raise ValueError("moves are numbered from 1")
        return value
    try:
        when = datetime.fromisoformat(value)
        aware = when.astimezone(UTC) if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        aware = None
    if aware is None:
        raise ValueError("must be a time with its zone, such as 2026-01-31T08:00:00Z")
    return aware


Point = Annotated[
    int | datetime,
    BeforeValidator(_point),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                {"type": "string", "format": "date-time"},
            ]
        }
    ),
]


class AliasRollback(Body):
    """How far to go back, one step if nothing is said, and why."""

    reason: str | None = Field(None, max_length=1000)
    steps: int | None = Field(None, ge=1, le=10_000, description="How many moves to undo.")
    to: Point | None = Field(
        None, description="The `seq` of a move, or a time: to what stood after it, or then."
    )

    @model_validator(mode="after")
    def _one_way(self) -> "AliasRollback":
        if self.steps is not None and self.to is not None:
            raise ValueError("give steps or to, not both")
        return self
