"""Models and their versions."""

from datetime import datetime
from typing import Any, Literal

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


class TypeScore(WireResponse):
    """The scores of one type of span or of one relation, in percent."""

    precision: float
    recall: float
    f1: float
    support: int = Field(description="Spans of this type, or arcs of this relation, in the corpus.")


class VersionEvaluation(WireResponse):
    """The newest scores of a version on one corpus. They stay when the job or the corpus is deleted."""

    corpus: str | None = Field(
        description="Id of the corpus; null for a held-out part of the training corpus."
    )
    corpus_name: str | None
    corpus_number: int | None
    held_out: float | None = Field(None, description="The fraction of the training corpus that was held out.")
    sentences: int
    metric: str = Field(description="The metric that versions are compared by: `f1`, `accuracy` or `uas`.")
    score: float = Field(description="The value of that metric, in percent.")
    metrics: dict[str, Any]
    types: dict[str, TypeScore] = Field(description="By type of span, or by relation.")
    at: datetime
    job_id: str | None


class ModelSignature(WireResponse):
    """What a version takes and gives."""

    labels: list[str] = Field(description="The labels; of a parser, the relations.")
    structure: Literal["chain", "independent", "tree"] = Field(
        "chain",
        description="`tree`: it is a parser, which gives heads and relations. Otherwise it gives tags.",
    )
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
    corpus_name: str | None = Field(None, description="Name of that corpus, also after it was deleted.")
    corpus_number: int | None = Field(None, description="Number of the upload under that name.")
    evaluations: list[VersionEvaluation] = Field(
        [], description="Newest first, one per corpus: from the dev set of training and from evaluate jobs."
    )
    size_bytes: int
    sha256: str
    seed: int
    code_version: str
    job_id: str | None
    created_at: datetime
    signature: ModelSignature | None = Field(
        None, description="What it takes and gives. Null if its model file cannot be read."
    )
