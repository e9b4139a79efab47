"""CRF++'s template files, such as `U05:%x[-1,0]/%x[0,0]`.

A line starts with `U` (joined with a label) or `B` (joined with a pair of labels). A line that starts with `#` is a
comment. A macro is `%x[row,column]`. A column may also have a name, which CRF++ does not support.
"""

import re

from tagsmith.core.features.templates.lines import parse_lines
from tagsmith.core.features.templates.template import Slot, Template, checked, checked_row

_MACRO = re.compile(r"%x\[(-?\d{1,4}),(\d{1,4}|[A-Za-z_][A-Za-z0-9_-]{0,63})\]")


def parse_crfpp(text: str) -> tuple[Template, ...]:
    """Parse a CRF++ template file, or raise Invalid that names each wrong line."""
    return parse_lines(text, lambda line: [] if line.startswith("#") else [_parse_line(line)], "U00:%x[0,0]")


def _parse_line(line: str) -> Template:
    kind = line[0]
    if kind not in "UB":
        raise ValueError(f"A template starts with U or B, a comment with #. This line starts with {kind!r}.")
    literals: list[str] = []
    slots: list[Slot] = []
    start = 0
    for match in _MACRO.finditer(line):
        literals.append(line[start : match.start()])
        row, column = checked_row(int(match[1])), match[2]
        slots.append(Slot(row, int(column) if column.isdigit() else column))
        start = match.end()
    literals.append(line[start:])
    for literal in literals:
        if "%" in literal:
            raise ValueError(f"Write a macro as %x[row,column], not {literal[literal.index('%') :][:20]!r}.")
    return checked(Template("U" if kind == "U" else "B", tuple(literals), tuple(slots)))
