"""Generators: one entry of the short form that makes a template for every n-gram of columns in a window.

`{"grams": 3, "columns": ["word", "pos"], "window": 2}` makes templates that join one, two and three adjacent places
from `word[-2]` to `word[2]`, and the same for `pos`. The templates are named by their places. They are ordered by
column, then by length, then from left to right.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tagsmith.core.features.templates.template import MAX_ROW, MAX_SLOTS, MAX_TEMPLATES, Slot

#: The column of a place: a number or a name.
COLUMN = r"\d{1,4}|[A-Za-z_][A-Za-z0-9_-]{0,63}"

#: The fields that only generators have. `join`, `edge` and `name` mean the same as in other entries.
FIELDS = ("grams", "columns", "window", "fit", "mix")

_SPAN = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
#: The JSON schema of these fields.
SCHEMA: dict[str, Any] = {
    "grams": {
        "anyOf": [{"type": "integer"}, _SPAN],
        "description": "The length of the longest n-gram, or the shortest and the longest length.",
    },
    "columns": {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "default": ["word"],
        "description": "The columns to make n-grams of. An inner list joins its columns at each place.",
    },
    "window": {
        "anyOf": [{"type": "integer"}, _SPAN],
        "default": 2,
        "description": "The number of tokens to either side, or the first and the last offset.",
    },
    "fit": {
        "enum": ["inside", "touch"],
        "default": "inside",
        "description": "Whether an n-gram lies inside the window, or has at least one place in it.",
    },
    "mix": {
        "type": "boolean",
        "default": False,
        "description": "Whether each place of an n-gram can have a different column.",
    },
}


class EntryError(ValueError):
    """An entry is invalid: the reason, and a JSON pointer relative to the entry."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.where = where


@dataclass(frozen=True, slots=True)
class Generator:
    """An entry that makes many templates."""

    lengths: tuple[int, int]
    #: The alternatives for each place of an n-gram: columns that are joined there.
    columns: tuple[tuple[int | str, ...], ...]
    window: tuple[int, int]
    fit: Literal["inside", "touch"]
    mix: bool

    @property
    def count(self) -> int:
        """The number of joins that the generator makes."""
        kinds = len(self.columns)
        return sum(
            len(self._starts(length)) * (kinds**length if self.mix else kinds) for length in self._lengths
        )

    def joins(self) -> Iterator[tuple[Slot, ...]]:
        """Make the slots of each join."""
        if self.mix:
            for length in self._lengths:
                yield from self._placed(length, itertools.product(self.columns, repeat=length))
            return
        for columns in self.columns:
            for length in self._lengths:
                yield from self._placed(length, iter([(columns,) * length]))

    def _placed(
        self, length: int, kinds: Iterator[tuple[tuple[int | str, ...], ...]]
    ) -> Iterator[tuple[Slot, ...]]:
        for gram in kinds:
            for start in self._starts(length):
                yield tuple(Slot(start + i, column) for i, columns in enumerate(gram) for column in columns)

    @property
    def _lengths(self) -> range:
        return range(self.lengths[0], self.lengths[1] + 1)

    def _starts(self, length: int) -> range:
        """The offsets at which n-grams of a length begin."""
        first, last = self.window
        if self.fit == "inside":
            return range(first, last - length + 2)
        return range(first - length + 1, last + 1)


def parse_generator(entry: Mapping[str, Any]) -> Generator:
    """Parse the fields of an entry that describe n-grams, or raise EntryError."""
    grams = entry["grams"] if isinstance(entry["grams"], list) else [1, entry["grams"]]
    shortest, longest = _span(grams, "/grams", "grams must be a length, or the shortest and the longest.")
    if not 1 <= shortest <= longest <= MAX_SLOTS:
        raise EntryError(
            f"n-grams must have 1 to {MAX_SLOTS} places. Give the shortest length first.", "/grams"
        )
    window = entry.get("window", 2)
    if isinstance(window, int) and not isinstance(window, bool):
        window = [-window, window]
    first, last = _span(
        window, "/window", "window must be a number of tokens, or the first and the last offset."
    )
    if first > last:
        raise EntryError("The first offset of a window must not be greater than the last.", "/window")
    fit, mix = entry.get("fit", "inside"), entry.get("mix", False)
    if fit not in ("inside", "touch"):
        raise EntryError('fit must be "inside" or "touch".', "/fit")
    if not isinstance(mix, bool):
        raise EntryError("mix must be true or false.", "/mix")
    made = Generator((shortest, longest), _columns(entry.get("columns", ["word"])), (first, last), fit, mix)
    if fit == "inside" and longest > last - first + 1:
        raise EntryError(
            f"A window of {last - first + 1} tokens has no {longest}-grams inside. Widen it.",
            "/grams",
        )
    spread = longest - 1 if fit == "touch" else 0
    if max(spread - first, last + spread) > MAX_ROW:
        raise EntryError(
            f"The n-grams reach farther than {MAX_ROW} tokens. Make the window smaller.", "/window"
        )
    if made.count > MAX_TEMPLATES:
        raise EntryError(
            f"This makes more than {MAX_TEMPLATES} templates. Use fewer columns or a smaller window."
        )
    return made


def _span(given: Any, where: str, reason: str) -> tuple[int, int]:
    if not (
        isinstance(given, list)
        and len(given) == 2
        and all(isinstance(each, int) and not isinstance(each, bool) for each in given)
    ):
        raise EntryError(reason, where)
    return given[0], given[1]


def _columns(given: Any) -> tuple[tuple[int | str, ...], ...]:
    if not isinstance(given, list) or not given or len(given) > MAX_TEMPLATES:
        raise EntryError(
            "columns must be a list of columns, or of lists of columns to join at each place.", "/columns"
        )
    made = []
    for i, columns in enumerate(given):
        where = f"/columns/{i}"
        if isinstance(columns, list):
            if not 1 <= len(columns) <= MAX_SLOTS:
                raise EntryError(f"Join 1 to {MAX_SLOTS} columns at a place.", where)
            made.append(tuple(_column(each, f"{where}/{j}") for j, each in enumerate(columns)))
        else:
            made.append((_column(columns, where),))
    return tuple(made)


def _column(given: Any, where: str) -> int | str:
    if not (isinstance(given, str) and re.fullmatch(COLUMN, given)):
        raise EntryError('A column is a name, or a number such as "1".', where)
    return int(given) if given.isdigit() else given
