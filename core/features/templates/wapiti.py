r"""Wapiti's patterns, such as `u:%x[-1,0]/%t[0,0,"^\u"]`.

A line starts with `u` (joined with a label), `b` (joined with a pair of labels) or `*` (both), in lower or upper case.
`#` starts a comment anywhere. A command is `%x`, `%t` or `%m` with an offset and a column. `%t` and `%m` also have a
regular expression in quotes. Commands in capitals fold case. `@1` is the first token of the sentence, `@-1` the last.
"""

import re
from typing import Literal

from tagsmith.core.base.regex import Regex
from tagsmith.core.features.templates.lines import parse_lines
from tagsmith.core.features.templates.template import (
    Anchor,
    Slot,
    Take,
    Template,
    checked,
    checked_row,
)

_COMMAND = re.compile(
    r"""%([xtmXTM])\[\ *(@)?\ *([+-]?\d{1,4}),\ *(\d{1,4}|[A-Za-z_][A-Za-z0-9_-]{0,63})
        (?:,"((?:[^"\\]|\\.)*)")?\]""",
    re.VERBOSE,
)
_TAKES: dict[str, Take] = {"x": "value", "t": "test", "m": "match"}
_KINDS: dict[str, tuple[Literal["U", "B"], ...]] = {"u": ("U",), "b": ("B",), "*": ("U", "B")}


def parse_wapiti(text: str) -> tuple[Template, ...]:
    """Parse a file of patterns, or raise Invalid that names each wrong line."""
    return parse_lines(text, _parse_line, "u:%x[0,0]")


def _parse_line(line: str) -> list[Template]:
    line = line.partition("#")[0].rstrip()
    if not line:
        return []
    line = line[0].lower() + line[1:]
    if line[0] not in _KINDS:
        raise ValueError(f"A pattern starts with u, b or *. This line starts with {line[0]!r}.")
    literals, slots, start = [], [], 0
    while (percent := line.find("%", start)) >= 0:
        found = _COMMAND.match(line, percent)
        if found is None:
            raise _wrong(line[percent:])
        literals.append(line[start:percent])
        slots.append(_slot(found))
        start = found.end()
    literals.append(line[start:])
    return [checked(Template(kind, tuple(literals), tuple(slots), "wapiti")) for kind in _KINDS[line[0]]]


def _slot(found: re.Match[str]) -> Slot:
    letter, absolute, offset, column, regex = found.groups()
    take = _TAKES[letter.lower()]
    if (regex is None) != (take == "value"):
        raise ValueError(f"%{letter} takes {'no' if take == 'value' else 'a'} regular expression in quotes.")
    if regex is not None:
        Regex(regex, "wapiti")
    row, anchor = checked_row(int(offset)), _anchor(absolute, offset)
    if anchor == "start":
        row -= 1  # Wapiti counts from 1 here, so @0 is the position before the first token
    number = int(column) if column.isdigit() else column
    return Slot(row, number, anchor, take, regex, letter.isupper() and take != "test")


def _anchor(absolute: str | None, offset: str) -> Anchor:
    return "token" if absolute is None else "end" if int(offset) < 0 else "start"


def _wrong(rest: str) -> ValueError:
    if re.match(r"%[xtmXTM]\[\ *\*", rest):
        return ValueError("Offsets read from a column, written with *, are not supported. Write a number.")
    return ValueError(
        f"Write a command as %x[offset,column], or %t or %m with a regular expression in quotes, not {rest[:20]!r}."
    )
