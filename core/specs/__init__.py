"""What a user asks for: the body of `POST /jobs`, a module a kind."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from core.features.matched import MatchedSpec
from core.specs.compare import CompareSpec
from core.specs.evaluate import EvaluateSpec
from core.specs.parts import (
    NAME_PATTERN,
    REFERENCE_PATTERN,
    Dev,
    DevCorpus,
    DevFraction,
    FlatStop,
    Learning,
    ModelReference,
    PatienceStop,
    Stop,
)
from core.specs.tag import TagSpec
from core.specs.train import TrainSpec
from core.specs.tune import TuneSpec, TuneTrain
from core.specs_base import validated

__all__ = [
    "NAME_PATTERN",
    "REFERENCE_PATTERN",
    "CompareSpec",
    "Dev",
    "DevCorpus",
    "DevFraction",
    "EvaluateSpec",
    "FlatStop",
    "JobSpec",
    "Learning",
    "ModelReference",
    "PatienceStop",
    "PostedJob",
    "Stop",
    "TagSpec",
    "TrainSpec",
    "TuneSpec",
    "check_against",
    "lexicon_columns",
    "parse_job",
    "promoting",
]

JobSpec = TrainSpec | CompareSpec | TuneSpec | EvaluateSpec | TagSpec
#: Any job as it is posted, told apart by `kind`.
PostedJob = Annotated[JobSpec, Field(discriminator="kind")]

_ANY: TypeAdapter[JobSpec] = TypeAdapter(PostedJob)
_BY_KIND: dict[str, TypeAdapter[Any]] = {
    "train": TypeAdapter(TrainSpec),
    "compare": TypeAdapter(CompareSpec),
    "tune": TypeAdapter(TuneSpec),
    "evaluate": TypeAdapter(EvaluateSpec),
    "tag": TypeAdapter(TagSpec),
}


def parse_job(body: Any) -> JobSpec:
    """Validate a job as posted, or raise Invalid with a JSON pointer to each fault."""
    kind = body.get("kind") if isinstance(body, dict) else None
    if isinstance(kind, str) and kind in _BY_KIND:
        # By its own class: the union would put the kind into the place of each fault.
        spec: JobSpec = validated(_BY_KIND[kind], body, f"The {kind} job")
        return spec
    return validated(_ANY, body, "The job")


def check_against(spec: JobSpec, columns: int | Sequence[str]) -> None:
    """Raise Invalid when the features name a column that a corpus with these attribute columns lacks."""
    if isinstance(spec, TuneSpec):
        spec.check_columns(columns)
    elif not isinstance(spec, EvaluateSpec | TagSpec):
        spec.features.resolve(columns)


def promoting(spec: JobSpec) -> TrainSpec | TuneTrain | None:
    """The part of a job that says what to train and which alias shall stand for it, if there is one."""
    end = spec.train if isinstance(spec, TuneSpec) else spec
    return end if isinstance(end, TrainSpec | TuneTrain) and end.promote is not None else None


def lexicon_columns(spec: JobSpec) -> list[tuple[str, MatchedSpec]]:
    """The columns that need a lexicon, with their names; those of every candidate of a search."""
    if isinstance(spec, EvaluateSpec | TagSpec):
        return []
    learnings = [c.learning for c in spec.candidates] if isinstance(spec, TuneSpec) else [spec]
    return [pair for learning in learnings for pair in learning.features.lexicons.items()]
