"""What the specs of several kinds of job are made of: names, a dev set, when to stop, how to learn."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, ValidationInfo, field_validator

from core.features.spec import FeatureSpec
from core.learn.registry import AnyTrainerSpec, uses_threads
from core.learn.sgd_l1 import SgdL1Spec
from core.specs_base import Spec

#: Names of models and aliases: safe in a path, a file name and a model reference.
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
CorpusId = Annotated[str, StringConstraints(pattern=r"^crp_[a-z0-9]{1,64}$")]

#: A version of a model: `name` (its champion, else its newest), `name@alias` or `name:3`.
REFERENCE_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}(@[a-z0-9][a-z0-9._-]{0,63}|:[1-9][0-9]{0,8})?$"
ModelReference = Annotated[str, StringConstraints(pattern=REFERENCE_PATTERN)]

Seed = Annotated[int, Field(ge=0, lt=2**63)]


class JobLimits(Spec):
    """What any job may take. `max_seconds`: the time that workers spend on it, in all; then it fails (`out_of_time`).

    Unlike `stop.max_seconds` of a training run, which ends that run with the model it has by then.
    """

    max_seconds: Annotated[float, Field(gt=0, le=31_536_000)] | None = None


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


class StopRule(Spec):
    """When to stop before all passes are done. `max_seconds`: the time budget, whatever the rule."""

    max_seconds: Annotated[float, Field(gt=0, le=31_536_000)] | None = None

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best pass are the model's, rather than those of the last."""
        return False


class PatienceStop(StopRule):
    """Stop after `patience` passes without a better score on dev; the best pass's weights are then the model's.

    Without `patience` only the time budget counts, and the model is what training had reached.
    """

    kind: Literal["patience"] = "patience"
    patience: Annotated[int, Field(ge=1, le=100_000)] | None = None

    @property
    def keeps_best(self) -> bool:
        return self.patience is not None


class FlatStop(StopRule):
    """Stop when the scores on dev of `window` adjacent passes lie within `deviation` (points of 100) of each other.

    Sun et al. (2014, section 4.6.1) call that empirical convergence. Without dev the same is asked of the objective,
    relative to its last value (0.01 is then a hundredth of it). The model is what training had reached.
    """

    kind: Literal["flat"]
    window: Annotated[int, Field(ge=2, le=1000)] = 5
    deviation: Annotated[float, Field(gt=0, le=100)] = 0.01


def _stop_kind(stop: Any) -> str | None:
    """Tell the rules apart; one that does not say its kind goes by patience."""
    kind = stop.get("kind", "patience") if isinstance(stop, dict) else getattr(stop, "kind", None)
    return f"by {kind}" if kind in ("patience", "flat") else None


# The tags are not the kinds: a tag that is also the name of a field would be taken for it when a fault is pointed at.
Stop = Annotated[
    Annotated[PatienceStop, Tag("by patience")] | Annotated[FlatStop, Tag("by flat")],
    Discriminator(
        _stop_kind,
        custom_error_type="union_tag_stop",
        custom_error_message="Input should be 'patience' or 'flat'",
        custom_error_context={"discriminator": "kind"},
    ),
]


class Learning(Spec):
    """How to learn from a corpus: what every run of a trainer is given, whichever kind of job it is part of.

    `objective: "exact"` computes the objective over the whole corpus after each pass of a trainer that only estimates
    it.
    """

    features: FeatureSpec = FeatureSpec()
    trainer: AnyTrainerSpec = SgdL1Spec()
    seed: Seed = 1
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    stop: Stop = PatienceStop()
    objective: Literal["estimate", "exact"] = "estimate"

    @field_validator("threads")
    @classmethod
    def _threads_of_use(cls, threads: int, info: ValidationInfo) -> int:
        trainer = info.data.get("trainer")
        if threads > 1 and trainer is not None and not uses_threads(trainer):
            raise ValueError(f"{trainer.kind} learns from one sequence after another: it takes 1 thread")
        return threads
