"""The beginning of a text, from which its format is recognised."""

import re
from dataclasses import dataclass
from functools import cached_property

import orjson

#: How much of a text is looked at: hundreds of sentences, at negligible cost.
HEAD_BYTES = 64 * 1024
#: Lines that are looked at.
MAX_LINES = 1000

#: The beginning of a JSON object, and the name of a member.
_OBJECT = re.compile(r'\s*\{\s*"[^"]*"\s*:')
_MEMBER = re.compile(r'"([^"\\]*)"\s*:')

#: The parts of speech of Universal Dependencies.
UNIVERSAL_TAGS = frozenset(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Head:
    """The first bytes of a text; `whole` if the text has no more."""

    data: bytes
    whole: bool

    @cached_property
    def lines(self) -> list[str]:
        """The first lines without their ends. A line that may be cut off is left out, unless it is the only one."""
        text = self.data.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace")
        lines = text.split("\n")
        if not self.whole and any(line.strip() for line in lines[:-1]):
            lines.pop()
        return [line.removesuffix("\r") for line in lines[:MAX_LINES]]

    @cached_property
    def filled(self) -> list[str]:
        """The lines that are not blank."""
        return [line for line in self.lines if line.strip()]

    @cached_property
    def json_fields(self) -> frozenset[str]:
        """The fields of the JSON object in the first line; none if it is not one.

        Of an object longer than the head, only the beginning is seen, with the fields of objects inside it.
        """
        first = self.filled[0] if self.filled else ""
        if not _OBJECT.match(first):
            return frozenset()
        try:
            return frozenset(orjson.loads(first))
        except orjson.JSONDecodeError:
            return frozenset(_MEMBER.findall(first))
