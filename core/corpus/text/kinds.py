"""Kinds of characters, as bit flags. Each distinct character is classified once per process."""

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

BLANK = 1 << 0  # separates tokens and belongs to none: white space, control characters, directional marks
NEWLINE = 1 << 1  # a blank that ends a line
LETTER = 1 << 2  # letters, and numbers other than decimal digits
UPPER = 1 << 3
LOWER = 1 << 4
DIGIT = 1 << 5
MARK = 1 << 6  # combining marks and other characters that belong to the character before
SINGLE = 1 << 7  # letters of scripts without spaces between words: Han and Hiragana
APOSTROPHE = 1 << 8
HYPHEN = 1 << 9
STOP = 1 << 10  # ends a sentence if a blank follows
WIDE_STOP = 1 << 11  # ends a sentence whatever follows
CLOSING = 1 << 12  # quotes and brackets that may stand between a stop and the end of the sentence
CONTINUING = 1 << 13  # punctuation that never begins a sentence
OTHER = 1 << 14

#: What words consist of.
WORD = LETTER | DIGIT | MARK

_APOSTROPHES = "'\u2019\u02bc"
_HYPHENS = "-\u2010\u2011"
_NEWLINES = "\n\r\x0b\x0c\x85\u2028\u2029"
_STOPS = ".!?\u2026\u061f\u06d4\u0964\u0965\u203c\u2047\u2048\u2049"
_WIDE_STOPS = "\u3002\uff01\uff1f\uff61"
_CLOSING = "\"'\u2019\u201d\u00bb\u203a)]}\u300d\u300f\uff09\u3011\u300b\u3009"
_CONTINUING = ",;:)]}%\u00bb\u203a\u201d\uff0c\uff1b\uff1a\u3001"
#: Format characters inside words: soft hyphen, zero-width non-joiner and joiner, word joiner.
_INSIDE = "\u00ad\u200c\u200d\u2060"


def kinds_of(points: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Return the flags of each code point. None has no flag."""
    table = _table()
    kinds = table[points]
    unknown = np.unique(points[kinds == 0])
    if unknown.size:
        table[unknown] = [_kind(chr(point)) for point in unknown.tolist()]
        kinds = table[points]
    return kinds


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)


@cache
def _table() -> NDArray[np.uint16]:
    """Return the flags found so far; 0 is unknown. Threads that fill the same entry write the same value."""
    return np.zeros(0x110000, np.uint16)


def _kind(c: str) -> int:
    category = unicodedata.category(c)
    if c in _INSIDE or category[0] == "M":
        return MARK
    if c.isspace() or category in ("Cc", "Cf") or c == "\u200b":
        return BLANK | (NEWLINE if c in _NEWLINES else 0)
    if c.isdecimal():
        return DIGIT
    if c.isalnum():
        if _stands_alone(ord(c)):
            return SINGLE
        return LETTER | (UPPER if c.isupper() or c.istitle() else LOWER if c.islower() else 0)
    found = OTHER
    for characters, flag in (
        (_APOSTROPHES, APOSTROPHE),
        (_HYPHENS, HYPHEN),
        (_STOPS, STOP),
        (_WIDE_STOPS, WIDE_STOP),
        (_CLOSING, CLOSING),
        (_CONTINUING, CONTINUING),
    ):
        found |= flag if c in characters else 0
    return found


def _stands_alone(point: int) -> bool:
    """Whether a letter is a token of its own: Han and Hiragana. Katakana and Hangul form words."""
    return (
        0x3040 <= point < 0x30A0
        or 0x2E80 <= point < 0x2FE0
        or 0x3400 <= point < 0x4DC0
        or 0x4E00 <= point < 0xA000
        or 0xF900 <= point < 0xFB00
        or 0x20000 <= point < 0x32400
    )
