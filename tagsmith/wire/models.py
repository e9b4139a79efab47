"""Models and their versions."""

from datetime import datetime
from typing import Any

from pydantic import AliasChoices, Field

from tagsmith.wire.base import WireResponse
from tagsmith.wire.tagging import TokenizerSpec


class ModelInfo(WireResponse):
    """A name under which versions are numbered."""

    name: str
    latest: int | None = Field(description="The newest version; null if all were deleted.")
    version_count: int = Field(validation_alias=AliasChoices("version_count", "versions"))
    aliases: dict[str, int] = Field(description="The version that each alias points to.")
    created_at: datetime


class ModelSignature(WireResponse):
    """What a version takes and gives."""

    labels: list[str]
    columns: list[str] = Field(description="The columns of a token; empty if tokens have named attributes.")
    text: bool = Field(description="Whether it tags text.")
    tokenizer: TokenizerSpec | None = Field(
        description="What splits text into tokens; null unless it tags text."
    )
    example: dict[str, Any] = Field(
        description="A body for `POST /tag`, with a sentence of the training corpus."
    )


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
    signature: ModelSignature | None = Field(
        None, description="What it takes and gives. Null if its model file cannot be read."
    )
