"""Feature templates: a join of columns at offsets, with the literal text around them.

CRF++ template files parse to this one structure here, Wapiti's patterns in `wapiti.py` and our own short form in
`short.py`. Two templates whose text differs only in the rows they look at make the same features (`U:%x[-1,0]` and
`U:%x[0,0]` are a bag of words), as in CRF++, because a feature is known by its text and values, not by the line it came
from.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.errors import Fault, Invalid

#: Farthest a template may look, in tokens either way. CRF++ stops at 8; every distance has its own boundary value.
MAX_ROW = 64
#: Distances outside a sentence that Wapiti tells apart: four by name, and all the others together.
WAPITI_REACH = 5
#: More than any published feature set has; an index has a row of so many a token.
MAX_TEMPLATES = 4096
#: Columns that one template may join.
MAX_SLOTS = 64

_MACRO = re.compile(r"%x\[(-?\d{1,4}),(\d{1,4}|[A-Za-z_][A-Za-z0-9_-]{0,63})\]")

Syntax = Literal["crf++", "wapiti", "short"]
#: What a row counts from: the token at hand, the first of its sentence, or the place behind the last.
Anchor = Literal["token", "start", "end"]
#: What a slot takes of a value: itself, whether an expression matches it, or what the expression matches.
Take = Literal["value", "test", "match"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The value of a column, `row` tokens from its anchor. A name is a derived column, or one of the corpus's own.

    Wapiti's slots may test or match with a regular expression of its dialect, and fold case; at a place outside the
    sentence they do so with the boundary's name.
    """

    row: int
    column: int | str
    anchor: Anchor = "token"
    take: Take = "value"
    regex: str | None = None
    fold: bool = False

    @property
    def plain(self) -> bool:
        """Whether the slot reads its column as it is."""
        return self.take == "value" and not self.fold

    @property
    def source(self) -> str:
        """The column, and what is done with it: a text of its own for each, without the row."""
        return str(self.column) if self.plain else self._command("")

    def __str__(self) -> str:
        """Write the slot as Wapiti does, and, where it can, CRF++."""
        absolute = "" if self.anchor == "token" else "@"
        # Wapiti counts from 1 at the start of a sentence.
        return self._command(f"{absolute}{self.row + (self.anchor == 'start')},")

    def _command(self, place: str) -> str:
        letter = {"value": "x", "test": "t", "match": "m"}[self.take]
        pattern = "" if self.regex is None else f',"{self.regex}"'
        return f"%{letter.upper() if self.fold else letter}[{place}{self.column}{pattern}]"


@dataclass(frozen=True, slots=True)
class Template:
    """A line of a template file: `literals[0] slots[0] literals[1] ... literals[-1]`.

    The syntax it was written in decides what places outside a sentence are called.
    """

    kind: Literal["U", "B"]
    literals: tuple[str, ...]
    slots: tuple[Slot, ...]
    syntax: Syntax = "crf++"

    def __str__(self) -> str:
        return self.joined(list(map(str, self.slots)))

    @property
    def name(self) -> str:
        """What users call the template: the identifier before the colon, or the whole text without one."""
        if self.syntax == "short":
            return self.literals[0].removesuffix("=")
        head, colon, _ = self.literals[0].partition(":")
        return head if colon else str(self)

    @property
    def identity(self) -> str:
        """The text that decides which features are the same: literals and columns, not rows."""
        return self.joined([f"\x00{slot.source}\x00" for slot in self.slots])

    @property
    def made(self) -> tuple[str, str]:
        """What templates that make the same features have in common."""
        return self.kind, self.identity

    @property
    def reach(self) -> int:
        """How many distances outside a sentence have a value of their own."""
        return WAPITI_REACH if self.syntax == "wapiti" else MAX_ROW

    def joined(self, values: Sequence[str]) -> str:
        """Put values in the places of the slots: the name of a feature."""
        pieces = [self.literals[0]]
        for value, literal in zip(values, self.literals[1:], strict=True):
            pieces += [value, literal]
        return "".join(pieces)

    def boundary(self, row: int) -> str:
        """Name the value so many tokens outside a sentence: `_B-1` just before the start, `_B+1` just after the end.

        Wapiti writes `_x-1`, and `_x-#` from the fifth on.
        """
        return wapiti_boundary(row) if self.syntax == "wapiti" else f"_B{row:+d}"


def wapiti_boundary(row: int) -> str:
    """Name a place outside a sentence as Wapiti does."""
    return f"_x{row:+d}" if abs(row) < WAPITI_REACH else f"_x{'-' if row < 0 else '+'}#"


def parse_crfpp(text: str) -> tuple[Template, ...]:
    """Parse a CRF++ template file, or raise Invalid naming each line that is wrong."""
    return parse_lines(text, lambda line: [] if line.startswith("#") else [_parse_line(line)], "U00:%x[0,0]")


def parse_lines(text: str, parse: Callable[[str], Sequence[Template]], example: str) -> tuple[Template, ...]:
    """Parse a file line by line; `parse` gives the templates of a line without its trailing blanks."""
    templates: list[Template] = []
    faults: list[Fault] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip()
        if not line:
            continue
        try:
            templates += parse(line)
        except ValueError as error:
            faults.append(Fault(reason=str(error), line=number))
    return distinct(templates, faults, f"give at least one line such as {example}")


def distinct(templates: Sequence[Template], faults: Sequence[Fault], advice: str) -> tuple[Template, ...]:
    """The templates without repetition, unless there are faults, none of them, or too many."""
    found = tuple(dict.fromkeys(templates))
    if not found and not faults:
        faults = [Fault(reason=f"no template found: {advice}")]
    if len(found) > MAX_TEMPLATES:
        faults = [Fault(reason=f"{len(found)} templates; at most {MAX_TEMPLATES} are possible")]
    if faults:
        raise Invalid("The templates do not parse", faults[:100], code="invalid_template")
    return found


def checked_row(row: int) -> int:
    if abs(row) > MAX_ROW:
        raise ValueError(f"row {row} is out of range: at most {MAX_ROW} tokens either way")
    return row


def checked(template: Template) -> Template:
    if len(template.slots) > MAX_SLOTS:
        raise ValueError(f"a template joins at most {MAX_SLOTS} values; here are {len(template.slots)}")
    if any("\x00" in literal for literal in template.literals):
        raise ValueError("a template holds no NUL characters")
    return template


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
        row, column = checked_row(int(match[1])), match[2]
        slots.append(Slot(row, int(column) if column.isdigit() else column))
        start = match.end()
    literals.append(line[start:])
    for literal in literals:
        if "%" in literal:
            raise ValueError(
                f"near {literal[literal.index('%') :][:20]!r}: a macro is written %x[row,column]"
            )
    return checked(Template("U" if kind == "U" else "B", tuple(literals), tuple(slots)))
