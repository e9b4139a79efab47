"""What can be trained with: trainers and presets of features; and the check of a job before it is posted."""

from typing import Any

from pydantic import Field

from tagsmith.wire.base import WireResponse


class TrainerOption(WireResponse):
    """A field of a trainer spec."""

    name: str
    type: str = Field(description="As in JSON Schema; several are separated by `or`.")
    default: Any = None
    choices: list[str]
    bounds: dict[str, float] = Field(description="`minimum`, `above`, `maximum`, `below`, where they exist.")


class TrainerInfo(WireResponse):
    """A trainer that a spec can name."""

    kind: str
    summary: str
    description: str = Field(description="What its own fields mean.")
    family: str
    fields: list[TrainerOption]


class PresetInfo(WireResponse):
    """A ready-made set of features."""

    name: str
    summary: str
    templates: int = Field(
        description="Number of templates for a corpus with one column, or for a treebank with form, lemma, upos, feats."
    )
    trees: bool = Field(default=False, description="Whether it is for corpora of dependency trees.")


class JobEstimate(WireResponse):
    """What a job will take."""

    tokens: int = Field(description="Tokens that it processes at most, over all passes and runs.")
    seconds: float | None = Field(
        description="By the speed of earlier jobs of this kind; null if there are none."
    )
    queue: str = Field(description="`quick` or `slow`.")


class JobCheck(WireResponse):
    """A job that could be posted now."""

    spec: dict[str, Any] = Field(description="The spec with defaults filled in and references resolved.")
    estimate: JobEstimate
