"""Feature templates: columns at offsets, joined, with literal text around them.

All syntaxes parse to this structure: CRF++ in `crfpp.py`, Wapiti in `wapiti.py` and the short form in `short.py`. A
feature is identified by its text and values, not by the line it comes from. So two templates that differ only in their
offsets make the same features, as in CRF++: `U:%x[-1,0]` and `U:%x[0,0]` are a bag of words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

#: The greatest offset of a slot, in tokens either way. CRF++ stops at 8. Every distance has its own boundary value.
MAX_ROW = 64
#: Distances outside a sentence that Wapiti distinguishes: four with their own name, and all others together.
WAPITI_REACH = 5
#: More than any published feature set has. The index has one cell per token and template.
MAX_TEMPLATES = 4096
#: The most columns that one template can join.
MAX_SLOTS = 64

Syntax = Literal["crf++", "wapiti", "short"]
#: What a row is relative to: the current token, the first token of the sentence, or the position after the last. In
#: templates over an arc: its head, its modifier, or each token between them. `arc` has columns of its own.
Anchor = Literal["token", "start", "end", "head", "modifier", "between", "arc"]
#: Anchors of templates over arcs.
ARC_ANCHORS = ("head", "modifier", "between", "arc")
#: The columns of an arc: which way the head is, and how many tokens away, in bins.
ARC_COLUMNS = ("direction", "distance")
#: What a slot takes from a value: the value, whether a regular expression matches it, or the match.
Take = Literal["value", "test", "match"]


@dataclass(frozen=True, slots=True)
class Slot:
    """The value of a column, `row` tokens from its anchor. A column has a number in the corpus, or a name.

    A slot in Wapiti's syntax can also test or match a regular expression in Wapiti's dialect, and fold case. Outside
    the sentence it applies these to the name of the boundary.
    """

    row: int
    column: int | str
    anchor: Anchor = "token"
    take: Take = "value"
    regex: str | None = None
    fold: bool = False

    @property
    def plain(self) -> bool:
        """Whether the slot takes the value unchanged."""
        return self.take == "value" and not self.fold

    @property
    def source(self) -> str:
        """A text that identifies the column and what is taken from its values, without the row."""
        return str(self.column) if self.plain else self._command("")

    @property
    def identity(self) -> str:
        """The source, and the place if it is one of an arc: head and modifier are not a bag of words."""
        return f"{self.anchor}[{self.row}].{self.source}" if self.anchor in ARC_ANCHORS else self.source

    def __str__(self) -> str:
        """Format the slot in Wapiti's syntax, which contains that of CRF++."""
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

    The syntax decides how positions outside a sentence are named.
    """

    kind: Literal["U", "B"]
    literals: tuple[str, ...]
    slots: tuple[Slot, ...]
    syntax: Syntax = "crf++"

    def __str__(self) -> str:
        return self.joined(list(map(str, self.slots)))

    @property
    def name(self) -> str:
        """The name shown to users: the text before the first colon, or the whole text without a colon."""
        if self.syntax == "short":
            return self.literals[0].removesuffix("=")
        head, colon, _ = self.literals[0].partition(":")
        return head if colon else str(self)

    @property
    def identity(self) -> str:
        """A text of literals and columns, without rows. Templates with equal identities make the same features.

        Templates over arcs that have the same literals are told apart by their places.
        """
        return self.joined([f"\x00{slot.identity}\x00" for slot in self.slots])

    @property
    def feature_group(self) -> tuple[str, str]:
        """The key under which templates that make the same features are grouped."""
        return self.kind, self.identity

    @property
    def reach(self) -> int:
        """The number of distances outside a sentence that have their own boundary value."""
        return WAPITI_REACH if self.syntax == "wapiti" else MAX_ROW

    @property
    def over_arcs(self) -> bool:
        """Whether all places are those of an arc."""
        return self.kind == "U" and all(slot.anchor in ARC_ANCHORS and slot.plain for slot in self.slots)

    def joined(self, values: Sequence[str]) -> str:
        """The name of the feature with these values in the slots."""
        pieces = [self.literals[0]]
        for value, literal in zip(values, self.literals[1:], strict=True):
            pieces += [value, literal]
        return "".join(pieces)

    def boundary(self, row: int) -> str:
        """The value at a position outside a sentence: `_B-1` just before the start, `_B+1` just after the end.

        In Wapiti's syntax it is `_x-1`, and `_x-#` from the fifth position on.
        """
        return wapiti_boundary(row) if self.syntax == "wapiti" else f"_B{row:+d}"


def wapiti_boundary(row: int) -> str:
    """Wapiti's name of a position outside a sentence."""
    return f"_x{row:+d}" if abs(row) < WAPITI_REACH else f"_x{'-' if row < 0 else '+'}#"


def checked_row(row: int) -> int:
    """Return `row`, or raise ValueError if it is out of range."""
    if abs(row) > MAX_ROW:
        raise ValueError(f"Row {row} is out of range. Use at most {MAX_ROW} tokens either way.")
    return row


def checked(template: Template) -> Template:
    """Return `template`, or raise ValueError if it has too many slots, a NUL character or wrong places of arcs."""
    if len(template.slots) > MAX_SLOTS:
        raise ValueError(
            f"A template joins at most {MAX_SLOTS} values. This one joins {len(template.slots)}."
        )
    if any("\x00" in literal for literal in template.literals):
        raise ValueError("A template has a NUL character. Remove it.")
    _check_arcs(template)
    return template


def _check_arcs(template: Template) -> None:
    """Raise ValueError if a template over arcs has places that its kernels cannot read."""
    anchors = [slot.anchor for slot in template.slots]
    if not set(anchors).isdisjoint(ARC_ANCHORS) and not template.over_arcs:
        raise ValueError("A template is over arcs or over tokens, not both.")
    if anchors.count("between") > 1:
        raise ValueError("A template has at most one place between.")
    for slot in template.slots:
        # The root is one position before the sentence, so that rows reach one position less far.
        if slot.anchor in ("head", "modifier") and abs(slot.row) >= MAX_ROW:
            raise ValueError(f"Row {slot.row} is out of range. Use at most {MAX_ROW - 1} tokens either way.")
        if slot.anchor in ("between", "arc") and slot.row:
            raise ValueError("Only places of the head and of the modifier have an offset.")
        if slot.anchor == "arc" and slot.column not in ARC_COLUMNS:
            raise ValueError(f"An arc has no column {slot.column!r}. It has {' and '.join(ARC_COLUMNS)}.")
