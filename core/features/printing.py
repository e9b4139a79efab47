"""Writing templates down, in the syntax they came in or in another that can say them.

Another syntax makes the same features under other names: CRF++ and Wapiti begin a name with their own letter, and call
the places outside a sentence differently. What a syntax cannot say raises Invalid with a reason for each template.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from core.errors import Fault, Invalid
from core.features.short import written
from core.features.template import WAPITI_REACH, Slot, Syntax, Template

_ROW = re.compile(r"\[@?-?\d+,")


def print_crfpp(templates: Sequence[Template]) -> str:
    """Write a CRF++ template file."""
    return "\n".join(line for line, _ in _said(templates, "crf++", _crfpp))


def print_wapiti(templates: Sequence[Template]) -> str:
    """Write a file of Wapiti patterns."""
    lines = _said(templates, "wapiti", _wapiti)
    both = _pairs(templates)
    return "\n".join(
        "*" + line[1:] if i in both else line for i, (line, _) in enumerate(lines) if i - 1 not in both
    )


def print_short(templates: Sequence[Template]) -> list[Any]:
    """Write the list of our own form."""
    both = _pairs(templates)
    entries: list[Any] = []
    for i, (name, template) in enumerate(_said(templates, "short", _short_name)):
        places = [written(slot) for slot in template.slots]
        edge: bool | str = "both" if i in both else template.kind == "B"
        if i - 1 in both:
            continue
        if places and name == "|".join(places) and not edge:
            entries.append(places)
            continue
        entry: dict[str, Any] = {"join": places} if places else {}
        if edge:
            entry["edge"] = edge
        if name != "|".join(places):
            entry["name"] = name
        entries.append(entry)
    return entries


def _pairs(templates: Sequence[Template]) -> set[int]:
    """Places where a template stands that the next one only joins with the pair of labels."""
    return {
        i
        for i, (one, other) in enumerate(itertools.pairwise(templates))
        if (one.kind, other.kind) == ("U", "B")
        and (one.literals, one.slots, one.syntax) == (other.literals, other.slots, other.syntax)
        and one.literals[0][:1] not in "UuBb"
    }


def _said(
    templates: Sequence[Template], syntax: Syntax, say: Callable[[Template], str]
) -> list[tuple[str, Template]]:
    said: list[tuple[str, Template]] = []
    faults: list[Fault] = []
    meanings: dict[tuple[str, str], str] = {}
    for template in templates:
        try:
            if template.syntax != syntax:
                _same_boundaries(template, syntax)
            line = say(template)
        except ValueError as error:
            faults.append(Fault(f"{template}: {error}"))
            continue
        clash = meanings.setdefault((template.kind, _without_rows(template, line)), template.identity)
        if clash != template.identity and template.syntax != syntax:
            faults.append(Fault(f"{template}: another template would get the same name"))
        said.append((line, template))
    if faults:
        raise Invalid(
            f"The templates cannot be said in {syntax} syntax", faults[:100], code="unsayable_template"
        )
    return said


def _without_rows(template: Template, line: str) -> str:
    """What decides, in the line written, which features are the same."""
    return "\x00".join([_ROW.sub("[", line), *(slot.source for slot in template.slots)])


def _same_boundaries(template: Template, syntax: Syntax) -> None:
    """Wapiti calls the fifth place outside a sentence and all beyond by one name; others tell them apart."""
    if "wapiti" not in (template.syntax, syntax):
        return
    for slot in template.slots:
        if _farthest(slot) > WAPITI_REACH:
            raise ValueError(
                f"{written(slot)} can lie more than {WAPITI_REACH} outside a sentence, where boundaries differ"
            )


def _farthest(slot: Slot) -> int:
    """The greatest distance outside a sentence, which has at least one token, that the slot can look at."""
    if slot.anchor == "token":
        return abs(slot.row)
    return max(slot.row, -slot.row - 1, 1)


def _crfpp(template: Template) -> str:
    for slot in template.slots:
        if slot.anchor != "token":
            raise ValueError("CRF++ has no places counted from the ends of a sentence")
        if not slot.plain:
            raise ValueError("CRF++ has no tests, matches or folding; give a derived column a name")
    return _line(template, template.kind)


def _wapiti(template: Template) -> str:
    line = _line(template, template.kind.lower())
    if any("#" in literal for literal in template.literals):
        raise ValueError("a # would start a comment")
    return line


def _line(template: Template, letter: str) -> str:
    """Write a template with the letter of its kind in front."""
    if any("%" in literal for literal in template.literals):
        raise ValueError("a % would start a macro")
    text = str(template)
    if template.syntax != "short":
        return letter + text[1:]
    return text if text.startswith(letter) else letter + text


def _short_name(template: Template) -> str:
    """The name under which our own form makes the features of a template."""
    for slot in template.slots:
        if not slot.plain:
            raise ValueError("tests, matches and folding are derived columns in this form; give them names")
    if template.syntax == "short":
        return "" if template.literals == ("B",) else template.name
    literals = template.literals
    if template.kind == "B" and literals in (("B",), ("b",)):
        return ""
    usual = ("/",) * (len(template.slots) - 1) + ("",) * bool(template.slots)
    name = literals[0][:-1] if literals[0].endswith(":") and literals[1:] == usual else "_".join(literals)
    if not name or len(name) > 200 or not name.isprintable():
        raise ValueError("its text cannot be a name")
    return name
