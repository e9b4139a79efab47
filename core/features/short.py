"""Our own form of templates in a spec: a list of joins such as `["word[-1]", "word[0]"]`.

An entry is a list of places, one place alone, or an object: `{"join": [...], "edge": true, "name": "bigram"}`. A place
is a column, by name or number, and an offset: `word[-1]`, `1[2]`, `word` for `word[0]`, `word[@1]` and `word[@-1]` for
the first and the last token of the sentence. `edge` joins the values with the pair of labels instead of one label,
`"both"` with either; `{"edge": true}` alone is the pair of labels by itself. The name, by default the places, begins
the names of the features: templates with the same name and the same columns make the same features.

An object with `grams` stands for many templates, the n-grams of a window (`grams.py`); each has the places of `join`
behind its own.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from core.errors import Fault
from core.features import grams
from core.features.grams import Wrong, parse_generator
from core.features.template import MAX_TEMPLATES, Slot, Template, checked, checked_row, distinct
from core.specs_base import pointer

_PLACE = re.compile(rf"({grams.COLUMN})(?:\[(@)?([+-]?\d{{1,4}})\])?")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_KINDS: dict[bool | str, tuple[Literal["U", "B"], ...]] = {False: ("U",), True: ("B",), "both": ("U", "B")}

#: Templates read, repetitions included: a few entries can stand for millions of the same, and a request waits.
_MOST_READ = 4 * MAX_TEMPLATES

_OBJECT: dict[str, Any] = {
    "join": {"type": "array", "items": {"type": "string"}, "default": []},
    "edge": {"enum": [False, True, "both"], "default": False},
    "name": {"type": "string", "minLength": 1, "maxLength": 200},
}
#: How the form is described in JSON schema.
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


def parse_short(entries: Sequence[Any]) -> tuple[Template, ...]:
    """Parse the entries, or raise Invalid with a pointer, from the list on, to each that is wrong."""
    templates: list[Template] = []
    faults: list[Fault] = []
    for number, entry in enumerate(entries):
        try:
            templates += _parse(entry)
        except Wrong as error:
            faults.append(Fault(str(error), pointer=f"/{number}{error.where}"))
        if len(templates) > _MOST_READ:
            faults.append(
                Fault(
                    f"at most {MAX_TEMPLATES} templates are possible; up to here are {len(templates)}",
                    pointer=f"/{number}",
                )
            )
            break
    return distinct(templates, faults, 'give at least one such as ["word[0]"]')


def _parse(entry: Any) -> list[Template]:
    if isinstance(entry, str):
        return _templates([_slot(entry, "")], False, None)
    if isinstance(entry, list):
        if not entry:
            raise Wrong('a join of nothing; the pair of labels by itself is {"edge": true}')
        return _templates([_slot(place, f"/{i}") for i, place in enumerate(entry)], False, None)
    if not isinstance(entry, dict):
        raise Wrong("a template is a place, a list of places, or an object with join, edge and name")
    generates = "grams" in entry
    for key in entry:
        if key not in ("join", "edge", "name") and not (generates and key in grams.FIELDS):
            only = (*grams.FIELDS, "join, edge and name") if generates else ("join, edge and name",)
            raise Wrong(
                f"a {'generator' if generates else 'template'} has {', '.join(only)} only"
                + (", unless it has grams" if key in grams.FIELDS else ""),
                pointer((key,)),
            )
    join, edge, name = entry.get("join", []), entry.get("edge", False), entry.get("name")
    if not isinstance(join, list):
        raise Wrong("join is a list of places", "/join")
    if not isinstance(edge, bool) and edge != "both":
        raise Wrong('edge is false, true or "both"', "/edge")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise Wrong("a name is 1 to 200 characters, none of them a control character", "/name")
    if not join and edge is not True and name is None and not generates:
        raise Wrong("a join of nothing needs a name, unless it is an edge", "/join")
    places = [_slot(place, f"/join/{i}") for i, place in enumerate(join)]
    if not generates:
        return _templates(places, edge, name)
    return [
        template
        for gram in parse_generator(entry).joins()
        for template in _templates([*gram, *places], edge, name)
    ]


def _slot(place: Any, where: str) -> Slot:
    found = _PLACE.fullmatch(place) if isinstance(place, str) else None
    if found is None:
        raise Wrong("a place is a column and an offset, such as word[-1]", where)
    column, absolute, offset = found.groups(default="")
    try:
        row = checked_row(int(offset or 0))
    except ValueError as error:
        raise Wrong(str(error), where) from None
    if absolute and not row:
        raise Wrong("places from the start count from @1, from the end from @-1", where)
    number = int(column) if column.isdigit() else column
    if not absolute:
        return Slot(row, number)
    return Slot(row, number, "end") if row < 0 else Slot(row - 1, number, "start")


def written(slot: Slot) -> str:
    """Say a place as the form has it."""
    if slot.anchor == "token":
        return f"{slot.column}[{slot.row}]"
    return f"{slot.column}[@{slot.row + 1 if slot.anchor == 'start' else slot.row}]"


def _templates(slots: list[Slot], edge: bool | str, name: str | None) -> list[Template]:
    if not slots and edge is True and name is None:
        return [Template("B", ("B",), (), "short")]
    head = name if name is not None else "|".join(map(written, slots))
    literals = (f"{head}=", *["|"] * (len(slots) - 1), *[""] * bool(slots))
    try:
        return [checked(Template(kind, literals, tuple(slots), "short")) for kind in _KINDS[edge]]
    except ValueError as error:
        raise Wrong(str(error)) from None
