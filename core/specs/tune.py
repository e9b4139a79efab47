"""`tune`: cross-validated search over fields of a spec."""

import copy
import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, TypeAdapter, model_validator

from core.errors import Fault, Invalid
from core.specs.parts import CorpusId, JobLimits, Learning, Name
from core.specs_base import Spec, pointer, validated

#: Each candidate is a training run a fold; a table longer than this nobody reads.
MAX_CANDIDATES = 500

FieldPath = Annotated[
    str, StringConstraints(pattern=r"^(trainer|features|stop)(\.[A-Za-z0-9_-]{1,64}){1,4}$", max_length=200)
]
#: What a field may be set to.
Value = bool | int | float | str | None
Values = Annotated[list[Value], Field(min_length=1, max_length=MAX_CANDIDATES)]


class Range(Spec):
    """Draw evenly between `low` and `high`, or evenly in their logarithms; `integer` for whole numbers."""

    low: Annotated[float, Field(ge=-1e15, le=1e15)]
    high: Annotated[float, Field(ge=-1e15, le=1e15)]
    scale: Literal["linear", "log"] = "linear"
    integer: bool = False

    @model_validator(mode="after")
    def _is_a_range(self) -> "Range":
        if not self.low < self.high:
            raise ValueError("low must be less than high")
        if self.scale == "log" and self.low <= 0:
            raise ValueError("a logarithmic range must begin above 0")
        if self.integer and not (self.low.is_integer() and self.high.is_integer()):
            raise ValueError("a range of whole numbers must begin and end with one")
        return self

    def draw(self, source: random.Random) -> float | int:
        """One value, with as many digits as a person would write."""
        low, high = self.low, self.high
        if self.integer:
            # Half a step on either side, so that the ends are as likely as the rest.
            low, high = low - 0.5, high + 0.5
            low = max(low, self.low / 2) if self.scale == "log" else low
        at = source.random()
        drawn = low * (high / low) ** at if self.scale == "log" else low + (high - low) * at
        within = min(max(float(f"{drawn:.4g}"), self.low), self.high)
        return round(within) if self.integer else within

    def ends(self) -> list[float | int]:
        """The values that must be possible if all others are."""
        return [round(end) if self.integer else end for end in (self.low, self.high)]


class GridSearch(Spec):
    """Try every combination of the values given."""

    kind: Literal["grid"]
    fields: Annotated[dict[FieldPath, Values], Field(min_length=1, max_length=16)]

    def draws(self, _seed: int) -> list[dict[str, Value]]:
        """The combinations, the last field (by name) changing fastest."""
        count = math.prod(len(values) for values in self.fields.values())
        if count > MAX_CANDIDATES:
            fault = Fault(
                f"these are {count} combinations; at most {MAX_CANDIDATES}", pointer="/search/fields"
            )
            raise Invalid("The tune job is not valid", [fault], code="invalid_spec")
        names = sorted(self.fields)
        made = (dict(zip(names, v, strict=True)) for v in itertools.product(*(self.fields[n] for n in names)))
        return _distinct(made)

    def probes(self) -> list[dict[str, Value]]:
        """Further settings that must be valid: none, as every one is tried."""
        return []


def _choice_kind(choice: Any) -> str:
    """Tell a range from a list, so that faults are said of that one only."""
    return "range" if isinstance(choice, dict | Range) else "list"


Choice = Annotated[
    Annotated[Range, Tag("range")] | Annotated[Values, Tag("list")], Discriminator(_choice_kind)
]


class RandomSearch(Spec):
    """Try `trials` settings drawn from ranges and lists. Settings drawn twice are tried once."""

    kind: Literal["random"]
    trials: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 20
    fields: Annotated[dict[FieldPath, Choice], Field(min_length=1, max_length=16)]

    def draws(self, seed: int) -> list[dict[str, Value]]:
        """The settings. Each field has its own stream, so that one more field does not change the others' values."""
        # Python's generator gives the same numbers in every release, and a seed is no secret.
        streams = {name: random.Random(f"{seed}:{name}") for name in sorted(self.fields)}  # noqa: S311
        made = (
            {name: self._draw(name, source) for name, source in streams.items()} for _ in range(self.trials)
        )
        return _distinct(made)

    def _draw(self, name: str, source: random.Random) -> Value:
        field = self.fields[name]
        return field.draw(source) if isinstance(field, Range) else field[int(source.random() * len(field))]

    def probes(self) -> list[dict[str, Value]]:
        """Further settings that must be valid: each end of a range, each value of a list."""
        ends = {name: f.ends() if isinstance(f, Range) else f for name, f in self.fields.items()}
        return [{name: value} for name, values in ends.items() for value in values]


def _distinct(settings: Any) -> list[dict[str, Value]]:
    """Each setting once. Told apart with their types: 1, 1.0 and true are different things to a spec."""
    return list(
        {tuple((name, repr(value)) for name, value in each.items()): each for each in settings}.values()
    )


class TuneTrain(Spec):
    """After the search, train a version on the whole corpus with the best spec."""

    model: Name
    promote: Name | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """One setting of the fields searched, and the spec it makes."""

    number: int  # from 1
    values: Mapping[str, Value]
    learning: Learning


class TuneSpec(JobLimits, Learning):
    """Search for the fields of a spec that score best in k-fold cross-validation.

    `search.fields` names fields by dotted path: `trainer.*`, `features.*`, `stop.*`. The rest of the job is the spec
    they are set in.
    """

    kind: Literal["tune"]
    corpus: CorpusId
    search: Annotated[GridSearch | RandomSearch, Field(discriminator="kind")]
    folds: Annotated[int, Field(ge=2, le=20)] = 4
    train: TuneTrain | None = None

    @model_validator(mode="after")
    def _candidates_are_valid(self) -> "TuneSpec":
        for values in self.search.probes():
            self._with(values)
        if not self.candidates:
            raise ValueError("the search has no candidate")
        return self

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every setting to try, in the order of the table."""
        draws = self.search.draws(self.seed)
        return tuple(Candidate(i, values, self._with(values)) for i, values in enumerate(draws, start=1))

    def check_columns(self, columns: int | Sequence[str]) -> None:
        """Raise Invalid when the features of a candidate name a column that the corpus lacks."""
        for candidate in self.candidates:
            try:
                candidate.learning.features.resolve(columns)
            except Invalid as error:
                raise self._blamed(error, candidate.values) from None

    def _with(self, values: Mapping[str, Value]) -> Learning:
        """The spec with fields set, or Invalid that says which value of which field was refused."""
        body = {name: copy.deepcopy(value) for name, value in self._base.items()}
        for path, value in values.items():
            self._set(body, path, value)
        try:
            return validated(_LEARNING, body, "The tune job")
        except Invalid as error:
            raise self._blamed(error, values) from None

    @cached_property
    def _base(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include=set(Learning.model_fields))

    def _set(self, body: dict[str, Any], path: str, value: Value) -> None:
        *parents, leaf = path.split(".")
        place: Any = body
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if path in ("trainer.kind", "stop.kind"):
            raise _refused(
                path, "a kind is not tuned: its fields are; a compare job compares kinds of trainers"
            )
        if not isinstance(place, dict):
            raise _refused(path, f"the spec has nothing at {'.'.join(parents)} to set {leaf} in")
        place[leaf] = value

    def _blamed(self, error: Invalid, values: Mapping[str, Value]) -> Invalid:
        """The same error, said of the fields searched: of the one at fault, or of all that could be."""
        faults = []
        for fault in error.faults:
            place = (fault.pointer or "").strip("/").replace("/", ".")
            near = [
                path
                for path in values
                if f"{path}.".startswith(f"{place}.") or f"{place}.".startswith(f"{path}.")
            ]
            exact = [path for path in near if path == place]
            said = ", ".join(f"{path} = {_shown(values[path])}" for path in exact or near or values)
            where = pointer(("search", "fields", exact[0] if exact else near[0])) if near else fault.pointer
            faults.append(Fault(f"{said}: {fault.reason}", line=fault.line, pointer=where))
        return Invalid(error.message, faults, code=error.code)


def _shown(value: Value) -> str:
    """A value as it was written, but for the middle of a long one."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:40]}...{text[-10:]}"


_LEARNING: TypeAdapter[Learning] = TypeAdapter(Learning)


def _refused(path: str, reason: str) -> Invalid:
    fault = Fault(f"{path}: {reason}", pointer=pointer(("search", "fields", path)))
    return Invalid("The tune job is not valid", [fault], code="invalid_spec")
