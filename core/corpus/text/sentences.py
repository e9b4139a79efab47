"""Where sentences end, by rules. Line breaks always end them.

A sentence ends after a stop (`. ! ?`, an ellipsis) and the quotes and brackets that directly follow it, if a blank
follows and the next token could begin a sentence: no small letter, and no punctuation that continues. An ellipsis needs
a capital letter. Stops of Chinese and Japanese need no blank. `abbreviations` marks the stops that belong to a word.
"""

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Places
from tagsmith.core.base.jit import inlined, kernel
from tagsmith.core.corpus.text import kinds as k
from tagsmith.core.corpus.text.words import Kinds, Points

_BLANK, _NEWLINE, _UPPER, _LOWER = k.BLANK, k.NEWLINE, k.UPPER, k.LOWER
_STOP, _WIDE_STOP, _CLOSING, _CONTINUING = k.STOP, k.WIDE_STOP, k.CLOSING, k.CONTINUING
_DOT, _ELLIPSIS = ord("."), 0x2026

# How a token ends.
_OPEN, _STOPPED, _ELLIPTIC, _WIDE = range(4)


@inlined
def _ending(points: Points, kinds: Kinds, start: int, stop: int) -> int:
    """Return how a token ends, without the quotes and brackets at its end."""
    at = stop - 1
    while at > start and (kinds[at] & _CLOSING) != 0:
        at -= 1
    if (kinds[at] & _WIDE_STOP) != 0:
        return _WIDE
    if (kinds[at] & _STOP) == 0:
        return _OPEN
    dots = at > start and points[at] == _DOT and points[at - 1] == _DOT
    return _ELLIPTIC if dots or points[at] == _ELLIPSIS else _STOPPED


@inlined
def _begins(kind: int, ending: int) -> bool:
    """Whether a token that starts with a character of this kind can begin a sentence, after a blank."""
    if ending == _ELLIPTIC:
        return (kind & _UPPER) != 0
    return (kind & (_LOWER | _CONTINUING)) == 0


@kernel
def find_sentences(
    points: Points, kinds: Kinds, starts: Places, stops: Places, quiet: NDArray[np.bool_], ends: Places
) -> int:
    """Fill `ends` with the number of tokens up to the end of each sentence; return the number of sentences.

    `quiet` marks tokens whose stop ends no sentence.
    """
    count, ending = 0, _OPEN
    for token in range(starts.shape[0]):
        if token + 1 == starts.shape[0]:
            ends[count] = token + 1
            return count + 1
        touches = token > 0 and stops[token - 1] == starts[token]
        closes = ending != _OPEN and touches and (kinds[starts[token]] & _CLOSING) != 0
        if not closes:
            ending = _OPEN if quiet[token] else _ending(points, kinds, starts[token], stops[token])
        after = starts[token + 1]
        ended = False
        for at in range(stops[token], after):
            ended = ended or (kinds[at] & _NEWLINE) != 0
        if not ended and ending == _WIDE:
            ended = (kinds[after] & (_CLOSING | _WIDE_STOP)) == 0
        elif not ended and ending != _OPEN:
            ended = after > stops[token] and _begins(kinds[after], ending)
        if ended:
            ends[count] = token + 1
            count += 1
            ending = _OPEN
    return count
