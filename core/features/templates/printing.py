"""Prints templates in their own syntax, or in another one that can express them.

In another syntax the features are the same but have other names: in CRF++ and Wapiti a name begins with the letter of
its kind, and positions outside a sentence are named differently. Printing raises Invalid, with a reason per template,
if the syntax cannot express the templates.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.features.templates.short import print_place
from tagsmith.core.features.templates.template import WAPITI_REACH, Slot, Syntax, Template

_ROW = re.compile(r"\[@?-?\d+,")


def print_crfpp(templates: Sequence[Template]) -> str:
    """Print a CRF++ template file."""
    return "\n".join(line for line, _ in _express_all(templates, "crf++", _crfpp))


def print_wapiti(templates: Sequence[Template]) -> str:
    """Print a file of Wapiti patterns."""
    lines = _express_all(templates, "wapiti", _wapiti)
    both = _pairs(templates)
    return "\n".join(
        "*" + line[1:] if i in both else line for i, (line, _) in enumerate(lines) if i - 1 not in both
    )


def print_short(templates: Sequence[Template]) -> list[Any]:
    """Print the list of the short form."""
    both = _pairs(templates)
    entries: list[Any] = []
    for i, (name, template) in enumerate(_express_all(templates, "short", _short_name)):
        places = [print_place(slot) for slot in template.slots]
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
    """The indexes of templates that the next template repeats for the pair of labels."""
    return {
        i
        for i, (one, other) in enumerate(itertools.pairwise(templates))
        if (one.kind, other.kind) == ("U", "B")
        and (one.literals, one.slots, one.syntax) == (other.literals, other.slots, other.syntax)
        and one.literals[0][:1] not in "UuBb"
    }


def _express_all(
    templates: Sequence[Template], syntax: Syntax, express: Callable[[Template], str]
) -> list[tuple[str, Template]]:
    """Express each template, or raise Invalid. Different templates must not become equal in the other syntax."""
    lines: list[tuple[str, Template]] = []
    faults: list[Fault] = []
    meanings: dict[tuple[str, str], str] = {}
    for template in templates:
        try:
            if template.syntax != syntax:
                _same_boundaries(template, syntax)
            line = express(template)
        except ValueError as error:
            faults.append(Fault(f"{template}: {error}"))
            continue
        clash = meanings.setdefault((template.kind, _without_rows(template, line)), template.identity)
        if clash != template.identity and template.syntax != syntax:
            faults.append(Fault(f"{template}: Another template would get the same name. Rename one of them."))
        lines.append((line, template))
    if faults:
        raise Invalid(
            f"The templates are not expressible in {syntax} syntax.",
            faults[:100],
            code="template_not_expressible",
        )
    return lines


def _without_rows(template: Template, line: str) -> str:
    """The part of a printed line that identifies the features."""
    return "\x00".join([_ROW.sub("[", line), *(slot.source for slot in template.slots)])


def _same_boundaries(template: Template, syntax: Syntax) -> None:
    """Raise ValueError if boundaries differ: Wapiti has one name for all positions from the fifth on, others do not."""
    if "wapiti" not in (template.syntax, syntax):
        return
    for slot in template.slots:
        if _farthest(slot) > WAPITI_REACH:
            raise ValueError(
                f"{print_place(slot)} can lie more than {WAPITI_REACH} outside a sentence, where boundaries differ."
            )


def _farthest(slot: Slot) -> int:
    """The greatest distance outside a sentence of at least one token at which the slot can read."""
    if slot.anchor == "token":
        return abs(slot.row)
    return max(slot.row, -slot.row - 1, 1)


def _crfpp(template: Template) -> str:
    for slot in template.slots:
        if slot.anchor != "token":
            raise ValueError("CRF++ has no positions counted from the ends of a sentence.")
        if not slot.plain:
            raise ValueError("CRF++ has no tests, matches or folding. Use a named derived column.")
    return _line(template, template.kind)


def _wapiti(template: Template) -> str:
    line = _line(template, template.kind.lower())
    if any("#" in literal for literal in template.literals):
        raise ValueError("A # would start a comment. Remove it from the text.")
    return line


def _line(template: Template, letter: str) -> str:
    """Print a template that begins with the letter of its kind."""
    if any("%" in literal for literal in template.literals):
        raise ValueError("A % would start a macro. Remove it from the text.")
    text = str(template)
    if template.syntax != "short":
        return letter + text[1:]
    return text if text.startswith(letter) else letter + text


def _short_name(template: Template) -> str:
    """The name of the template in the short form."""
    for slot in template.slots:
        if not slot.plain:
            raise ValueError("The short form has no tests, matches or folding. Use a named derived column.")
    if template.syntax == "short":
        return "" if template.literals == ("B",) else template.name
    literals = template.literals
    if template.kind == "B" and literals in (("B",), ("b",)):
        return ""
    usual = ("/",) * (len(template.slots) - 1) + ("",) * bool(template.slots)
    name = literals[0][:-1] if literals[0].endswith(":") and literals[1:] == usual else "_".join(literals)
    if not name or len(name) > 200 or not name.isprintable():
        raise ValueError("Its text cannot be a name. Use 1 to 200 printable characters.")
    return name
