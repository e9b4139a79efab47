"""The searches of a tune job: a grid of values, or random draws."""

import itertools
import math
import random
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.spec import Spec

#: Each candidate costs one training run per fold, and longer tables are not readable.
MAX_CANDIDATES = 500

FieldPath = Annotated[
    str, StringConstraints(pattern=r"^(trainer|features|stop)(\.[A-Za-z0-9_-]{1,64}){1,4}$", max_length=200)
]
#: A value for a field.
Value = bool | int | float | str | None
Values = Annotated[list[Value], Field(min_length=1, max_length=MAX_CANDIDATES)]


class Range(Spec):
    """Draw uniformly between `low` and `high`, or uniformly in the logarithm; `integer` draws whole numbers."""

    low: Annotated[float, Field(ge=-1e15, le=1e15)]
    high: Annotated[float, Field(ge=-1e15, le=1e15)]
    scale: Literal["linear", "log"] = "linear"
    integer: bool = False

    @model_validator(mode="after")
    def _is_a_range(self) -> "Range":
        if not self.low < self.high:
            raise ValueError("`low` must be less than `high`.")
        if self.scale == "log" and self.low <= 0:
            raise ValueError("A logarithmic range must start above 0.")
        if self.integer and not (self.low.is_integer() and self.high.is_integer()):
            raise ValueError("The ends of an integer range must be integers.")
        return self

    def draw(self, source: random.Random) -> float | int:
        """Draw one value, rounded to a readable number of digits."""
        low, high = self.low, self.high
        if self.integer:
            # Extend by half a step at both ends, so that the ends are as likely as the other values.
            low, high = low - 0.5, high + 0.5
            low = max(low, self.low / 2) if self.scale == "log" else low
        at = source.random()
        drawn = low * (high / low) ** at if self.scale == "log" else low + (high - low) * at
        within = min(max(float(f"{drawn:.4g}"), self.low), self.high)
        return round(within) if self.integer else within

    def ends(self) -> list[float | int]:
        """Return both ends, which are checked even if no draw comes near them."""
        return [round(end) if self.integer else end for end in (self.low, self.high)]


class GridSearch(Spec):
    """Try every combination of the given values."""

    kind: Literal["grid"]
    fields: Annotated[dict[FieldPath, Values], Field(min_length=1, max_length=16)]

    def draws(self, _seed: int) -> list[dict[str, Value]]:
        """Return the combinations; the last field in name order changes fastest."""
        count = math.prod(len(values) for values in self.fields.values())
        if count > MAX_CANDIDATES:
            reason = f"The grid has {count:,} combinations. At most {MAX_CANDIDATES:,} are allowed."
            fault = Fault(reason, pointer="/search/fields", type=FaultType.SEARCHED_VALUE)
            raise Invalid("The tune job is not valid.", [fault], code="invalid_spec")
        names = sorted(self.fields)
        combinations = (
            dict(zip(names, v, strict=True)) for v in itertools.product(*(self.fields[n] for n in names))
        )
        return _distinct(combinations)

    def probes(self) -> list[dict[str, Value]]:
        """Return further settings to validate: none, because the search tries every combination."""
        return []


def _choice_kind(choice: Any) -> str:
    """Distinguish a range from a list, so that errors refer to the right type."""
    return "range" if isinstance(choice, dict | Range) else "list"


Choice = Annotated[
    Annotated[Range, Tag("range")] | Annotated[Values, Tag("list")], Discriminator(_choice_kind)
]


class RandomSearch(Spec):
    """Try `trials` settings drawn from ranges and lists. Duplicate settings are tried once."""

    kind: Literal["random"]
    trials: Annotated[int, Field(ge=1, le=MAX_CANDIDATES)] = 20
    fields: Annotated[dict[FieldPath, Choice], Field(min_length=1, max_length=16)]

    def draws(self, seed: int) -> list[dict[str, Value]]:
        """Draw the settings. Each field has its own random stream, so a new field does not change the others."""
        # Python's generator is stable across releases, and the seed needs no secrecy.
        streams = {name: random.Random(f"{seed}:{name}") for name in sorted(self.fields)}  # noqa: S311
        draws = (
            {name: self._draw(name, source) for name, source in streams.items()} for _ in range(self.trials)
        )
        return _distinct(draws)

    def _draw(self, name: str, source: random.Random) -> Value:
        field = self.fields[name]
        return field.draw(source) if isinstance(field, Range) else field[int(source.random() * len(field))]

    def probes(self) -> list[dict[str, Value]]:
        """Return further settings to validate: each end of a range and each value of a list."""
        ends = {name: f.ends() if isinstance(f, Range) else f for name, f in self.fields.items()}
        return [{name: value} for name, values in ends.items() for value in values]


def _distinct(settings: Iterable[dict[str, Value]]) -> list[dict[str, Value]]:
    """Remove duplicates. Types matter: 1, 1.0 and true are different values in a spec."""
    return list(
        {tuple((name, repr(value)) for name, value in each.items()): each for each in settings}.values()
    )


#: How the settings to try are chosen.
Search = Annotated[GridSearch | RandomSearch, Field(discriminator="kind")]
