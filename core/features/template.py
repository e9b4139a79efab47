"""Feature templates: a join of columns at offsets, with the literal text around them.

CRF++ template files parse to this one structure. Two templates whose text differs only in the rows they look at
make the same features (`U:%x[-1,0]` and `U:%x[0,0]` are a bag of words), as in CRF++, because a feature is known
by its text and values, not by the line it came from.
"""

import re
from dataclasses import dataclass
from typing import Literal

from core.errors import Fault, Invalid

#: Farthest a template may look, in tokens either way. CRF++ stops at 8; every distance has its own boundary value.
MAX_ROW = 64

_MACRO = re.compile(r"%x\[(-?\d{1,4}),(\d{1,4}|[A-Za-z_][A-Za-z0-9_-]{0,63})\]")


@dataclass(frozen=True, slots=True)
class Slot:
    """One `%x[row,column]`: the value of a column, `row` tokens away. A name is a derived column."""

    row: int
    column: int | str

    def __str__(self) -> str:
        return f"%x[{self.row},{self.column}]"


@dataclass(frozen=True, slots=True)
class Template:
    """A line of a template file: `literals[0] slots[0] literals[1] ... literals[-1]`."""

    kind: Literal["U", "B"]
    literals: tuple[str, ...]
    slots: tuple[Slot, ...]

    def __str__(self) -> str:
        pieces = [self.literals[0]]
        for slot, literal in zip(self.slots, self.literals[1:], strict=True):
            pieces += [str(slot), literal]
        return "".join(pieces)

    @property
    def name(self) -> str:
        """What users call the template: the identifier before the colon, or the whole text without one."""
        head, colon, _ = self.literals[0].partition(":")
        return head if colon else str(self)

    @property
    def identity(self) -> str:
        """The text that decides which features are the same: literals and columns, not rows."""
        pieces = [self.literals[0]]
        for slot, literal in zip(self.slots, self.literals[1:], strict=True):
            pieces += [f"\x00{slot.column}\x00", literal]
        return "".join(pieces)

    def expand(self, values: list[str]) -> str:
        """Rebuild the feature's name from its values."""
        pieces = [self.literals[0]]
        for value, literal in zip(values, self.literals[1:], strict=True):
            pieces += [value, literal]
        return "".join(pieces)


def boundary(row: int) -> str:
    """Name the value outside a sentence: `_B-1` just before the start, `_B+1` just after the end."""
    return f"_B{row:+d}"


def parse_crfpp(text: str) -> tuple[Template, ...]:
    """Parse a CRF++ template file, or raise Invalid naming each line that is wrong."""
    templates: list[Template] = []
    faults: list[Fault] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r").rstrip()
        if not line or line.startswith("#"):
            continue
        try:
            templates.append(_parse_line(line))
        except ValueError as error:
            faults.append(Fault(reason=str(error), line=number))
    if not templates and not faults:
        faults.append(Fault(reason="no template found: give at least one line such as U00:%x[0,0]"))
    if faults:
        raise Invalid("The templates do not parse", faults[:100], code="invalid_template")
    return tuple(dict.fromkeys(templates))


def _parse_line(line: str) -> Template:
    kind = line[0]
    if kind not in "UB":
        raise ValueError(
            f"a template starts with U or B, or is a comment with #; this line starts with {kind!r}"
        )
    literals: list[str] = []
    slots: list[Slot] = []
    start = 0
    for match in _MACRO.finditer(line):
        literals.append(line[start : match.start()])
        row, column = int(match[1]), match[2]
        if abs(row) > MAX_ROW:
            raise ValueError(f"row {row} is out of range: at most {MAX_ROW} tokens either way")
        slots.append(Slot(row, int(column) if column.isdigit() else column))
        start = match.end()
    literals.append(line[start:])
    for literal in literals:
        if "%" in literal:
            raise ValueError(
                f"near {literal[literal.index('%') :][:20]!r}: a macro is written %x[row,column]"
            )
        if "\x00" in literal:
            raise ValueError("a template holds no NUL characters")
    return Template("U" if kind == "U" else "B", tuple(literals), tuple(slots))
