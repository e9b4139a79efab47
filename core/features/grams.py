"""Generators of templates: n-grams of columns at every place of a window, said in one entry of the short form.

`{"grams": 3, "columns": ["word", "pos"], "window": 2}` stands for the joins of one, two and three places next to each
other from `word[-2]` to `word[2]`, and for those of `pos`. They are templates like any other: named by their places, in
the order of the columns, then of lengths, then from left to right.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.features.template import MAX_ROW, MAX_SLOTS, MAX_TEMPLATES, Slot

#: How a place names its column: by number, or by name.
COLUMN = r"\d{1,4}|[A-Za-z_][A-Za-z0-9_-]{0,63}"

#: What an entry may say that only a generator has; `join`, `edge` and `name` mean what they mean elsewhere.
FIELDS = ("grams", "columns", "window", "fit", "mix")

_SPAN = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
#: How these are described in JSON schema.
SCHEMA: dict[str, Any] = {
    "grams": {
        "anyOf": [{"type": "integer"}, _SPAN],
        "description": "The longest n-gram, or the shortest and the longest.",
    },
    "columns": {
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "default": ["word"],
        "description": "Columns that have n-grams; a list inside joins its columns at each place.",
    },
    "window": {
        "anyOf": [{"type": "integer"}, _SPAN],
        "default": 2,
        "description": "Tokens either way, or the first and the last offset.",
    },
    "fit": {
        "enum": ["inside", "touch"],
        "default": "inside",
        "description": "Whether an n-gram lies inside the window, or has at least one place in it.",
    },
    "mix": {
        "type": "boolean",
        "default": False,
        "description": "Whether each place of an n-gram may be of another column.",
    },
}


class Wrong(ValueError):
    """An entry that cannot be read: why, and the pointer from the entry on."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.where = where


@dataclass(frozen=True, slots=True)
class Generator:
    """An entry that stands for many templates."""

    lengths: tuple[int, int]
    #: What may stand at a place: columns, joined.
    columns: tuple[tuple[int | str, ...], ...]
    window: tuple[int, int]
    fit: Literal["inside", "touch"]
    mix: bool

    @property
    def count(self) -> int:
        """How many joins it stands for."""
        kinds = len(self.columns)
        return sum(
            len(self._starts(length)) * (kinds**length if self.mix else kinds) for length in self._lengths
        )

    def joins(self) -> Iterator[tuple[Slot, ...]]:
        """The joins it stands for."""
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
        """Where n-grams of a length begin."""
        first, last = self.window
        if self.fit == "inside":
            return range(first, last - length + 2)
        return range(first - length + 1, last + 1)


def parse_generator(entry: Mapping[str, Any]) -> Generator:
    """Read what an entry says of n-grams, or raise Wrong."""
    grams = entry["grams"] if isinstance(entry["grams"], list) else [1, entry["grams"]]
    shortest, longest = _span(grams, "/grams", "grams is a length, or the shortest and the longest")
    if not 1 <= shortest <= longest <= MAX_SLOTS:
        raise Wrong(f"n-grams have 1 to {MAX_SLOTS} places, the shortest length first", "/grams")
    window = entry.get("window", 2)
    if isinstance(window, int) and not isinstance(window, bool):
        window = [-window, window]
    first, last = _span(window, "/window", "window is a number of tokens, or the first and the last offset")
    if first > last:
        raise Wrong("a window begins before it ends", "/window")
    fit, mix = entry.get("fit", "inside"), entry.get("mix", False)
    if fit not in ("inside", "touch"):
        raise Wrong('fit is "inside" or "touch"', "/fit")
    if not isinstance(mix, bool):
        raise Wrong("mix is true or false", "/mix")
    made = Generator((shortest, longest), _columns(entry.get("columns", ["word"])), (first, last), fit, mix)
    if fit == "inside" and longest > last - first + 1:
        raise Wrong(f"a window of {last - first + 1} tokens has no {longest}-grams inside", "/grams")
    spread = longest - 1 if fit == "touch" else 0
    if max(spread - first, last + spread) > MAX_ROW:
        raise Wrong(f"the n-grams reach farther than {MAX_ROW} tokens", "/window")
    if made.count > MAX_TEMPLATES:
        raise Wrong(f"this makes more than {MAX_TEMPLATES} templates, which is the most possible")
    return made


def _span(given: Any, where: str, reason: str) -> tuple[int, int]:
    if not (
        isinstance(given, list)
        and len(given) == 2
        and all(isinstance(each, int) and not isinstance(each, bool) for each in given)
    ):
        raise Wrong(reason, where)
    return given[0], given[1]


def _columns(given: Any) -> tuple[tuple[int | str, ...], ...]:
    if not isinstance(given, list) or not given or len(given) > MAX_TEMPLATES:
        raise Wrong("columns is a list of columns, or of lists of columns to join at each place", "/columns")
    made = []
    for i, columns in enumerate(given):
        where = f"/columns/{i}"
        if isinstance(columns, list):
            if not 1 <= len(columns) <= MAX_SLOTS:
                raise Wrong(f"1 to {MAX_SLOTS} columns are joined at a place", where)
            made.append(tuple(_column(each, f"{where}/{j}") for j, each in enumerate(columns)))
        else:
            made.append((_column(columns, where),))
    return tuple(made)


def _column(given: Any, where: str) -> int | str:
    if not (isinstance(given, str) and re.fullmatch(COLUMN, given)):
        raise Wrong('a column is a name, or a number such as "1"', where)
    return int(given) if given.isdigit() else given
