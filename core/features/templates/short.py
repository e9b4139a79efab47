"""The short form of templates in a spec: a list of joins such as `["word[-1]", "word[0]"]`.

An entry is a list of places, a single place, or an object: `{"join": [...], "edge": true, "name": "bigram"}`. A place
is a column, by name or number, and an offset: `word[-1]`, `1[2]`, `word` for `word[0]`. `word[@1]` and `word[@-1]` are
the first and the last token of the sentence. `edge` joins the values with the pair of labels instead of one label,
`"both"` makes both templates, and `{"edge": true}` alone is the pair of labels by itself. The names of the features
begin with the name, which is by default the list of places. Templates with the same name and columns make the same
features.

An object with `grams` makes many templates, the n-grams of a window (see `grams.py`), each followed by the places of
`join`.

In templates over arcs, a place is `head.word[-1]`, `modifier.word`, `between.word` (any token between the two), or a
column of the arc itself: `direction` or `distance`. A template has at most one place between. The templates of a list
are all over arcs or all over tokens.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from tagsmith.core.base.errors import Fault
from tagsmith.core.base.spec import pointer
from tagsmith.core.features.templates import grams
from tagsmith.core.features.templates.grams import EntryError, parse_generator
from tagsmith.core.features.templates.lines import distinct
from tagsmith.core.features.templates.template import (
    ARC_ANCHORS,
    ARC_COLUMNS,
    MAX_TEMPLATES,
    Anchor,
    Slot,
    Template,
    checked,
    checked_row,
)

_PLACE = re.compile(rf"({grams.COLUMN})(?:\[(@)?([+-]?\d{{1,4}})\])?")
#: Where a place of an arc is.
_SIDES: dict[str, Anchor] = {"head": "head", "modifier": "modifier", "between": "between"}
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_KINDS: dict[bool | str, tuple[Literal["U", "B"], ...]] = {False: ("U",), True: ("B",), "both": ("U", "B")}

#: The most templates parsed, including repetitions. A few generators could otherwise make millions of equal templates.
_MOST_READ = 4 * MAX_TEMPLATES

_OBJECT: dict[str, Any] = {
    "join": {"type": "array", "items": {"type": "string"}, "default": []},
    "edge": {"enum": [False, True, "both"], "default": False},
    "name": {"type": "string", "minLength": 1, "maxLength": 200},
}
#: The JSON schema of the short form.
SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {
                "type": "object",
                "properties": _OBJECT,
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {**_OBJECT, **grams.SCHEMA},
                "required": ["grams"],
                "additionalProperties": False,
            },
        ]
    },
    "examples": [[["word[-1]", "word[0]"], "word[1]", {"grams": 3, "columns": ["1"]}, {"edge": True}]],
}


def places_of(entries: Sequence[Any]) -> Iterator[str]:
    """Yield the places that the entries name, which need not be valid."""
    for entry in entries:
        places = entry.get("join") if isinstance(entry, dict) else entry
        yield from (
            place for place in (places if isinstance(places, list) else [places]) if isinstance(place, str)
        )


def over_arcs(entries: Sequence[Any]) -> bool:
    """Whether a place is at the head, at the modifier or between them.

    `direction` and `distance` do not count: columns of a corpus can have these names.
    """
    return any(_is_sided(place) for place in places_of(entries))


def parse_short(entries: Sequence[Any], *, arcs: bool = False) -> tuple[Template, ...]:
    """Parse the entries, or raise Invalid with a JSON pointer, relative to the list, to each invalid entry.

    `arcs`: the templates are over arcs, not over tokens.
    """
    templates: list[Template] = []
    faults: list[Fault] = []
    for number, entry in enumerate(entries):
        try:
            templates += _parse(entry, _arc_slot if arcs else _slot)
        except EntryError as error:
            faults.append(Fault(str(error), pointer=f"/{number}{error.where}"))
        if len(templates) > _MOST_READ:
            faults.append(
                Fault(
                    f"Use at most {MAX_TEMPLATES} templates. There are {len(templates)} up to this entry.",
                    pointer=f"/{number}",
                )
            )
            break
    return distinct(templates, faults, 'Give at least one, such as ["word[0]"].')


def _parse(entry: Any, slot: Callable[[Any, str], Slot]) -> list[Template]:
    if isinstance(entry, str):
        return _templates([slot(entry, "")], False, None)
    if isinstance(entry, list):
        if not entry:
            raise EntryError('The join is empty. Write the pair of labels by itself as {"edge": true}.')
        return _templates([slot(place, f"/{i}") for i, place in enumerate(entry)], False, None)
    if not isinstance(entry, dict):
        raise EntryError("A template is a place, a list of places, or an object with join, edge and name.")
    generates = "grams" in entry
    for key in entry:
        if key not in ("join", "edge", "name") and not (generates and key in grams.FIELDS):
            only = (*grams.FIELDS, "join, edge and name") if generates else ("join, edge and name",)
            raise EntryError(
                f"A {'generator' if generates else 'template'} can have only {', '.join(only)}"
                + (", unless it has grams." if key in grams.FIELDS else "."),
                pointer((key,)),
            )
    if slot is _arc_slot and (generates or entry.get("edge")):
        raise EntryError("Templates over arcs have no edge and no grams.", "/grams" if generates else "/edge")
    return _parse_object(entry, slot, generates)


def _parse_object(entry: dict[str, Any], slot: Callable[[Any, str], Slot], generates: bool) -> list[Template]:
    join, edge, name = entry.get("join", []), entry.get("edge", False), entry.get("name")
    if not isinstance(join, list):
        raise EntryError("join must be a list of places.", "/join")
    if not isinstance(edge, bool) and edge != "both":
        raise EntryError('edge must be false, true or "both".', "/edge")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise EntryError("A name has 1 to 200 characters and no control character.", "/name")
    if not join and edge is not True and name is None and not generates:
        raise EntryError("An empty join needs a name, unless edge is true.", "/join")
    places = [slot(place, f"/join/{i}") for i, place in enumerate(join)]
    if not generates:
        return _templates(places, edge, name)
    return [
        template
        for gram in parse_generator(entry).joins()
        for template in _templates([*gram, *places], edge, name)
    ]


def _is_sided(place: str) -> bool:
    """Whether a place says that it is at the head, at the modifier or between them."""
    return place.partition(".")[0] in _SIDES and "." in place


def _slot(place: Any, where: str) -> Slot:
    found = _PLACE.fullmatch(place) if isinstance(place, str) else None
    if found is None:
        if isinstance(place, str) and _is_sided(place):
            raise EntryError(
                f"{place} is a place of an arc, but the templates are over tokens. Write a place such as word[-1].",
                where,
            )
        raise EntryError("A place is a column and an offset, such as word[-1].", where)
    column, absolute, offset = found.groups(default="")
    try:
        row = checked_row(int(offset or 0))
    except ValueError as error:
        raise EntryError(str(error), where) from None
    if absolute and not row:
        raise EntryError("Positions from the start count from @1, from the end from @-1.", where)
    number = int(column) if column.isdigit() else column
    if not absolute:
        return Slot(row, number)
    return Slot(row, number, "end") if row < 0 else Slot(row - 1, number, "start")


def _arc_slot(place: Any, where: str) -> Slot:
    if place in ARC_COLUMNS:
        return Slot(0, place, "arc")
    anchor, dot, rest = place.partition(".") if isinstance(place, str) else ("", "", "")
    if not dot or anchor not in _SIDES:
        if isinstance(place, str) and _PLACE.fullmatch(place):
            raise EntryError(
                f"{place} is a place of a token, but the templates are over arcs. Write head.{place} or "
                f"modifier.{place}.",
                where,
            )
        raise EntryError(
            "A place of an arc is head.word[-1], modifier.word, between.word, direction or distance.", where
        )
    found = _slot(rest, where)
    if found.anchor != "token":
        raise EntryError(
            "A place of an arc has an offset from head or modifier, such as head.word[-1].", where
        )
    return replace(found, anchor=_SIDES[anchor])


def print_place(slot: Slot) -> str:
    """Format a slot as a place of the short form."""
    if slot.anchor == "arc":
        return str(slot.column)
    if slot.anchor in ARC_ANCHORS:
        return f"{slot.anchor}.{slot.column}" + (f"[{slot.row}]" if slot.row else "")
    if slot.anchor == "token":
        return f"{slot.column}[{slot.row}]"
    return f"{slot.column}[@{slot.row + 1 if slot.anchor == 'start' else slot.row}]"


def _templates(slots: list[Slot], edge: bool | str, name: str | None) -> list[Template]:
    if not slots and edge is True and name is None:
        return [Template("B", ("B",), (), "short")]
    head = name if name is not None else "|".join(map(print_place, slots))
    literals = (f"{head}=", *["|"] * (len(slots) - 1), *[""] * bool(slots))
    try:
        return [checked(Template(kind, literals, tuple(slots), "short")) for kind in _KINDS[edge]]
    except ValueError as error:
        raise EntryError(str(error)) from None
