"""Cutting text into tokens: the one way for corpora of texts and for texts to tag.

With "words" a token is a run of letters, digits and combining marks, or any other character by itself that is no blank;
with "blanks" it is whatever stands between blanks. A line is a sentence.
"""

import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Places

Tokens = Literal["words", "blanks"]

# Kinds of characters.
_BLANK, _WORD, _OTHER = range(3)


@dataclass(frozen=True, eq=False, slots=True)
class TextTokens:
    """Where the tokens of a text stand, in characters, and where its sentences end, in tokens."""

    starts: Places
    stops: Places
    ends: Places


def points_of(text: str) -> NDArray[np.uint32]:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32, copy=False)


def _kind(point: int) -> int:
    character = chr(point)
    if character.isspace() or character == "\ufeff":
        return _BLANK
    return _WORD if character.isalnum() or unicodedata.category(character)[0] == "M" else _OTHER


def tokens_of(text: str, tokens: Tokens) -> TextTokens:
    """Find tokens and sentences; what a character is, is asked once of each different one."""
    points = points_of(text)
    distinct, places = np.unique(points, return_inverse=True)
    kinds = np.array([_kind(point) for point in distinct.tolist()], np.int8)[places]
    if tokens == "blanks":
        kinds = np.minimum(kinds, _WORD)
    before = np.concatenate([np.full(1, _BLANK, np.int8), kinds[:-1]])
    after = np.concatenate([kinds[1:], np.full(1, _BLANK, np.int8)])
    starts = np.flatnonzero((kinds != _BLANK) & ((kinds != before) | (kinds == _OTHER)))
    stops = np.flatnonzero((kinds != _BLANK) & ((kinds != after) | (kinds == _OTHER))) + 1
    newlines = np.flatnonzero(points == 10)
    ends = np.unique(np.append(np.searchsorted(starts, newlines), starts.size))
    return TextTokens(starts, stops, ends[ends > 0].astype(np.int64))
