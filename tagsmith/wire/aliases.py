"""Aliases, their moves and their history."""

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

from tagsmith.wire.base import WireRequest, WireResponse

#: The largest number of a version or a move: what an integer column of the databases holds.
MAX_NUMBER = 2**31 - 1


class Alias(WireResponse):
    """The version that an alias points to."""

    model: str
    alias: str
    version: int
    seq: int = Field(description="Number of its last move; also its ETag.")
    rollback_to: int | None = Field(
        description="The version that a rollback of one step returns to, or null. The ETag does not cover it."
    )
    updated_at: datetime


class Move(WireResponse):
    """One move of an alias."""

    seq: int
    action: str = Field(description="`move` or `rollback`.")
    from_version: int | None
    to_version: int
    to_seq: int | None = Field(description="For a rollback: the earlier move whose target is restored.")
    actor: str | None
    reason: str | None
    request_id: str | None
    forced: str | None = Field(description="For a forced move: what the policy objected to.")
    at: datetime


class AliasMove(WireRequest):
    """A move to make."""

    version: int = Field(ge=1, le=MAX_NUMBER)
    force: bool = Field(False, description="Move against the policy of the model. Needs a reason.")
    reason: str | None = Field(None, max_length=1000, validate_default=True)

    @field_validator("reason")
    @classmethod
    def _require_reason_to_force(cls, reason: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("force") and not (reason or "").strip():
            raise ValueError("A forced move needs a reason.")
        return reason


def _point(value: Any) -> Any:
    """Read a point of the history: the number of a move, or a time with its zone."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("Give the number of a move, or a time such as 2026-01-31T08:00:00Z.")  # noqa: TRY004  # pydantic takes no other
    if isinstance(value, int):
        if not 1 <= value <= MAX_NUMBER:
            raise ValueError("Moves are numbered from 1.")
        return value
    try:
        when = datetime.fromisoformat(value)
        aware = when.astimezone(UTC) if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        aware = None
    if aware is None:
        raise ValueError("Give a time with its zone, such as 2026-01-31T08:00:00Z.")
    return aware


HistoryPoint = Annotated[
    int | datetime,
    BeforeValidator(_point),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MAX_NUMBER},
                {"type": "string", "format": "date-time"},
            ]
        }
    ),
]


class AliasRollback(WireRequest):
    """A rollback to make: one step by default, or a number of steps, or to a point of the history."""

    reason: str | None = Field(None, max_length=1000)
    steps: int | None = Field(None, ge=1, le=10_000, description="Number of moves to undo.")
    to: HistoryPoint | None = Field(
        None, description="The `seq` of a move or a time: restore the target after that move or at that time."
    )

    @model_validator(mode="after")
    def _allow_steps_or_point(self) -> "AliasRollback":
        if self.steps is not None and self.to is not None:
            raise ValueError("Give `steps` or `to`, not both.")
        return self
