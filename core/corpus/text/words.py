"""The tokens of `words`, version 2: rules that keep names, numbers and addresses together.

At each position the first rule that applies makes the token:

| rule | examples |
|---|---|
| address on the web: a scheme and `://`, or `www.`, up to a blank, without punctuation at its end | `https://a.org/x` |
| e-mail address | `ada@example.org` |
| `@` or `#` and a word | `@user`, `#tag` |
| word: letters, digits and marks, joined by one of `' - _ &` inside | `O'Brien`, `don't`, `18-year-old`, `AT&T` |
| also joined by `.` before a small letter, and by `. , : / -` between digits | `node.js`, `1,234.56`, `2026-11-18` |
| also letters with stops | `U.S.`, `C.F.`, `e.g.`, `Ph.D.`, `EE.UU.` |
| an apostrophe and a short word that lost its beginning; a sign or a decimal point and digits | `'s`, `'90s`, `-5` |
| a run of one of the characters `. - = * _ ~ ! ? '` and the backquote | `...`, `--` |
| any other character, with its marks; a Han or Hiragana letter | `$`, `(`, an emoji, `日` |

A word keeps a hyphen at its end if a blank follows, as in `pre- and post-war`. `abbreviations` treats the stop after a
word, which needs lists.
"""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Places
from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.corpus.text import kinds as k

Points = NDArray[np.uint32]
Kinds = NDArray[np.uint16]

# Flags as plain numbers, which kernels take as constants.
_BLANK, _NEWLINE, _LETTER, _UPPER, _LOWER, _DIGIT = k.BLANK, k.NEWLINE, k.LETTER, k.UPPER, k.LOWER, k.DIGIT
_MARK, _SINGLE, _APOSTROPHE, _HYPHEN, _WORD = k.MARK, k.SINGLE, k.APOSTROPHE, k.HYPHEN, k.WORD
_CLOSING, _CONTINUING, _STOP = k.CLOSING, k.CONTINUING, k.STOP

_DOT, _COMMA, _COLON, _SLASH, _AT, _HASH, _AND, _LINE, _PLUS, _OPEN, _CLOSE = map(ord, ".,:/@#&_+()")
_DASH, _W, _S = map(ord, "-ws")
_ZERO_WIDTH_JOINER = 0x200D
#: Characters of which a run is one token.
_RUNS = tuple(map(ord, ".-=*_~!?'`"))
#: Characters that end an address on the web, besides blanks: < > " and quotes in other shapes.
_ENDS_ADDRESS = tuple(map(ord, '<>"\u201c\u201d\u00ab\u00bb'))
#: The longest scheme and the longest part of an e-mail address before `@`. They bound how far a word looks ahead.
_MAX_SCHEME, _MAX_LOCAL = 20, 64


@inlined
def _is_word(kinds: Kinds, at: int) -> bool:
    return bool(at < kinds.shape[0] and (kinds[at] & _WORD) != 0)


@inlined
def _run_stop(kinds: Kinds, at: int, wanted: int) -> int:
    """Return where the run of characters with one of the flags ends."""
    while at < kinds.shape[0] and (kinds[at] & wanted) != 0:
        at += 1
    return at


@inlined
def _is_short_word(points: Points, kinds: Kinds, at: int) -> bool:
    """Whether a word that lost its beginning starts here: s t n m k d, re ve ll em, or a decade such as 90s and 90."""
    stop = _run_stop(kinds, at, _WORD)
    digits = _run_stop(kinds, at, _DIGIT)
    if digits == at + 2:
        return stop == digits or (stop == digits + 1 and points[digits] == _S)
    if stop == at + 1:
        c = points[at] | 32
        return c in (115, 116, 110, 109, 107, 100)
    if stop == at + 2:
        a, b = points[at] | 32, points[at + 1] | 32
        return (b == 101 and a in (114, 118)) or (a == 108 and b == 108) or (a == 101 and b == 109)
    return False


@kernel
def web_address_stop(points: Points, kinds: Kinds, at: int) -> int:
    """Return the end of an address on the web that starts here, or `at` if none does."""
    n = points.shape[0]
    stop = at
    while stop < min(n, at + _MAX_SCHEME) and (
        (kinds[stop] & (_LETTER | _DIGIT)) != 0 or points[stop] in (_PLUS, _DOT, _DASH)
    ):
        stop += 1
    found = (
        stop + 3 < n and points[stop] == _COLON and points[stop + 1] == _SLASH and points[stop + 2] == _SLASH
    )
    if not found:
        www = (
            at + 4 < n
            and (points[at] | 32) == _W
            and (points[at + 1] | 32) == _W
            and (points[at + 2] | 32) == _W
        )
        if not (www and points[at + 3] == _DOT and _is_word(kinds, at + 4)):
            return at
    opened = False
    while stop < n and (kinds[stop] & (_BLANK | _SINGLE)) == 0 and points[stop] not in _ENDS_ADDRESS:
        opened = opened or points[stop] == _OPEN
        stop += 1
    while (kinds[stop - 1] & (_STOP | _CLOSING | _CONTINUING)) != 0 and not (
        opened and points[stop - 1] == _CLOSE
    ):
        stop -= 1
    return stop


@kernel
def mail_address_stop(points: Points, kinds: Kinds, at: int) -> int:
    """Return the end of an e-mail address that starts here, or `at` if none does."""
    n = points.shape[0]
    stop = at
    while stop < min(n, at + _MAX_LOCAL) and (
        (kinds[stop] & (_WORD | _HYPHEN)) != 0 or points[stop] in (_DOT, _LINE, _PLUS)
    ):
        stop += 1
    if stop + 1 >= n or points[stop] != _AT or not _is_word(kinds, stop + 1):
        return at
    stop = _run_stop(kinds, stop + 1, _WORD | _HYPHEN)
    dots = 0
    while stop < n and points[stop] == _DOT and _is_word(kinds, stop + 1):
        stop = _run_stop(kinds, stop + 1, _WORD | _HYPHEN)
        dots += 1
    return stop if dots else at


@inlined
def _is_initial(kinds: Kinds, start: int, stop: int) -> bool:
    """Whether a part of a word is one letter, or two capitals as in `EE.UU.`."""
    if (kinds[start] & _LETTER) == 0:
        return False
    return bool(stop == start + 1 or (stop == start + 2 and (kinds[start] & kinds[start + 1] & _UPPER) != 0))


@inlined
def _joins(points: Points, kinds: Kinds, at: int, part: int) -> bool:
    """Whether the character at `at` joins what is before it, from `part` on, and the word character after it."""
    c, kind, before, after = points[at], kinds[at], kinds[at - 1], kinds[at + 1]
    digits = (before & _DIGIT) != 0 and (after & _DIGIT) != 0
    if (kind & (_APOSTROPHE | _HYPHEN)) != 0 or c in (_LINE, _AND):
        return True
    if c in (_COMMA, _COLON, _SLASH):
        return bool(digits)
    if c != _DOT:
        return False
    if digits or (after & _LOWER) != 0:
        return True
    # Letters with stops: a part of one letter or of two capitals, after one that is short too.
    known = at - part == 1 or (at - part <= 3 and (kinds[part] & _UPPER) != 0)
    return known and _is_initial(kinds, at + 1, _run_stop(kinds, at + 1, _WORD))


@kernel
def word_stop(points: Points, kinds: Kinds, at: int) -> int:
    """Return the end of the word that starts here."""
    n = points.shape[0]
    part = at  # where the part after the last joint starts
    dotted = False
    stop = _run_stop(kinds, at, _WORD)
    while stop + 1 < n and _is_word(kinds, stop + 1) and _joins(points, kinds, stop, part):
        dotted = points[stop] == _DOT
        part = stop + 1
        stop = _run_stop(kinds, part, _WORD)
    if stop < n and points[stop] == _DOT and dotted and _is_initial(kinds, part, stop):
        return stop + 1
    hanging = (
        stop + 1 < n and (kinds[stop] & _HYPHEN) != 0 and (kinds[stop + 1] & (_BLANK | _NEWLINE)) == _BLANK
    )
    return stop + 1 if hanging and (kinds[stop - 1] & _LETTER) != 0 else stop


@kernel
def _symbol_stop(points: Points, kinds: Kinds, at: int) -> int:
    """Return the end of a single character with what belongs to it: marks, and the rest of an emoji."""
    n, first = points.shape[0], points[at]
    stop = at + 1
    if 0x1F1E6 <= first <= 0x1F1FF and stop < n and 0x1F1E6 <= points[stop] <= 0x1F1FF:  # a flag
        stop += 1
    while stop < n and ((kinds[stop] & _MARK) != 0 or 0x1F3FB <= points[stop] <= 0x1F3FF):
        joined = points[stop] == _ZERO_WIDTH_JOINER and stop + 1 < n and points[stop + 1] >= 0x2190
        stop += 2 if joined else 1
    return stop


@kernel
def _token_stop(points: Points, kinds: Kinds, at: int) -> int:
    n, c, kind = points.shape[0], points[at], kinds[at]
    if (kind & _WORD) != 0:
        stop = web_address_stop(points, kinds, at)
        if stop == at:
            stop = mail_address_stop(points, kinds, at)
        return stop if stop > at else word_stop(points, kinds, at)
    after_blank = at == 0 or (kinds[at - 1] & _BLANK) != 0
    if c in (_AT, _HASH) and at + 1 < n and (_is_word(kinds, at + 1) or points[at + 1] == _LINE):
        stop = at + 1
        while stop < n and ((kinds[stop] & _WORD) != 0 or points[stop] == _LINE):
            stop += 1
        return stop
    if (kind & _APOSTROPHE) != 0 and _is_word(kinds, at + 1) and _is_short_word(points, kinds, at + 1):
        return _run_stop(kinds, at + 1, _WORD)
    signed = (kind & _HYPHEN) != 0 or c in (_PLUS, _DOT)
    if signed and after_blank and at + 1 < n and (kinds[at + 1] & _DIGIT) != 0:
        return word_stop(points, kinds, at + 1)
    if c in _RUNS:
        stop = at + 1
        while stop < n and points[stop] == c:
            stop += 1
        return stop
    return _symbol_stop(points, kinds, at)


@kernel
def find_words(points: Points, kinds: Kinds, starts: Places, stops: Places) -> int:
    """Fill `starts` and `stops` with the tokens of a text; return their number. Both have room for every character."""
    count, at = 0, 0
    while at < points.shape[0]:
        if (kinds[at] & _BLANK) != 0:
            at += 1
            continue
        starts[count] = at
        at = _token_stop(points, kinds, at)
        stops[count] = at
        count += 1
    return count
