"""What a user asks for: the body of `POST /jobs`."""

from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

from core.features.spec import FeatureSpec
from core.learn.registry import AnyTrainerSpec, uses_threads
from core.learn.sgd_l1 import SgdL1Spec
from core.specs_base import Spec, validated

#: Names of models and aliases: safe in a path, a file name and a model reference.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
CorpusId = Annotated[str, StringConstraints(pattern=r"^crp_[a-z0-9]{1,64}$")]


#: A version of a model: `name` (its champion, else its newest), `name@alias` or `name:3`.
ModelReference = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}(@[a-z0-9][a-z0-9._-]{0,63}|:[1-9][0-9]{0,8})?$"),
]


class DevCorpus(Spec):
    """Evaluate on another corpus after each pass."""

    corpus: CorpusId


class DevFraction(Spec):
    """Hold back a part of the training corpus, chosen by the seed, to evaluate on after each pass."""

    fraction: Annotated[float, Field(gt=0, lt=1)]


def _dev_kind(dev: Any) -> str | None:
    """Tell which of the two a dev is, so that faults are said of that one only."""
    given = dev if isinstance(dev, dict) else type(dev).model_fields if isinstance(dev, Spec) else ()
    return "by corpus" if "corpus" in given else "by fraction" if "fraction" in given else None


Dev = Annotated[
    Annotated[DevCorpus, Tag("by corpus")] | Annotated[DevFraction, Tag("by fraction")],
    Discriminator(
        _dev_kind,
        custom_error_type="dev",
        custom_error_message="Give a corpus or a fraction",
    ),
]


class Stop(Spec):
    """When to stop before all passes are done.

    `patience`: so many passes without a better score on dev; the best pass's weights are then the model's.
    `max_seconds`: the time budget; the model is then what training had reached.
    """

    patience: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_seconds: Annotated[float, Field(gt=0, le=31_536_000)] | None = None


class TrainSpec(Spec):
    """Train one version of a model.

    `init` names a version to start from (`name`, `name@alias` or `name:3`). `objective: "exact"` computes the objective
    over the whole corpus after each pass of a trainer that only estimates it.
    """

    kind: Literal["train"]
    model: Name
    corpus: CorpusId
    dev: Dev | None = None
    features: FeatureSpec = FeatureSpec()
    trainer: AnyTrainerSpec = SgdL1Spec()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    stop: Stop = Stop()
    promote: Name | None = None
    init: ModelReference | None = None
    objective: Literal["estimate", "exact"] = "estimate"

    @field_validator("threads")
    @classmethod
    def _threads_of_use(cls, threads: int, info: ValidationInfo) -> int:
        trainer = info.data.get("trainer")
        if threads > 1 and trainer is not None and not uses_threads(trainer):
            raise ValueError(f"{trainer.kind} learns from one sequence after another: it takes 1 thread")
        return threads


JobSpec = TrainSpec
_ADAPTER: TypeAdapter[JobSpec] = TypeAdapter(JobSpec)


def parse_job(body: Any) -> JobSpec:
    """Validate a job as posted, or raise Invalid with a JSON pointer to each fault."""
    return validated(_ADAPTER, body, "The job")


def check_against(spec: JobSpec, columns: int) -> None:
    """Raise Invalid when the features name a column that a corpus of so many attribute columns lacks."""
    spec.features.resolve(columns)
