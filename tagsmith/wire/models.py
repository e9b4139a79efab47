"""Models and their versions."""

from datetime import datetime
from typing import Any

from pydantic import AliasChoices, Field

from tagsmith.wire.base import WireResponse


class ModelInfo(WireResponse):
    """A name under which versions are numbered."""

    name: str
    latest: int | None = Field(description="The newest version; null if all were deleted.")
    version_count: int = Field(validation_alias=AliasChoices("version_count", "versions"))
    aliases: dict[str, int] = Field(description="The version that each alias points to.")
    created_at: datetime


class ModelVersion(WireResponse):
    """One trained version. Versions never change."""

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
