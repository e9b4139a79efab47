"""Parts that the specs of several job kinds share: the base class, the dev set, the promotion."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

from pydantic import Discriminator, Field, Tag

from tagsmith.core.base.spec import Spec, pointer
from tagsmith.core.store.ids import CorpusReference, NamesCorpus

S = TypeVar("S", bound=Spec)


class JobSpec(Spec):
    """The base class of the specs of all kinds; each sets `kind` to a literal.

    `max_seconds` limits the time that workers spend on the job, summed over all attempts. A job that exceeds it fails
    (`out_of_time`). A training run that reaches `stop.max_seconds` instead ends with the model trained so far.
    """

    kind: str
    max_seconds: Annotated[float, Field(gt=0, le=31_536_000)] | None = None

    def with_corpora(self, resolve: Callable[[str, str], str]) -> Self:
        """Return the spec with every reference to a corpus replaced by `resolve(reference, JSON pointer)`."""
        return _resolved(self, resolve, ())


def _resolved(spec: S, resolve: Callable[[str, str], str], place: tuple[str, ...]) -> S:
    changed: dict[str, Any] = {}
    for name, field in type(spec).model_fields.items():
        value, at = getattr(spec, name), (*place, name)
        if isinstance(value, str) and any(isinstance(mark, NamesCorpus) for mark in field.metadata):
            changed[name] = resolve(value, pointer(at))
        elif isinstance(value, Spec):
            changed[name] = _resolved(value, resolve, at)
    return spec.model_copy(update=changed)


class DevCorpus(Spec):
    """Evaluate on another corpus after each pass."""

    corpus: CorpusReference


class DevFraction(Spec):
    """Hold out a part of the training corpus, chosen by the seed, and evaluate on it after each pass."""

    fraction: Annotated[float, Field(gt=0, lt=1)]


def _dev_kind(dev: Any) -> str | None:
    """Return the tag of the matching class, so that faults are reported for that class only."""
    given = dev if isinstance(dev, dict) else type(dev).model_fields if isinstance(dev, Spec) else ()
    return "by corpus" if "corpus" in given else "by fraction" if "fraction" in given else None


Dev = Annotated[
    Annotated[DevCorpus, Tag("by corpus")] | Annotated[DevFraction, Tag("by fraction")],
    Discriminator(
        _dev_kind,
        custom_error_type="dev",
        custom_error_message='Write {"fraction": 0.1} or {"corpus": "NAME"}.',
    ),
]


@dataclass(frozen=True, slots=True)
class Promotion:
    """An alias that a job moves to the version it trains."""

    model: str
    alias: str
    #: The dev set that scores the version, if any.
    dev: Dev | None
    #: JSON pointer to the alias in the spec.
    pointer: str
