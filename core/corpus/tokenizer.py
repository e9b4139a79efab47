"""Split text into tokens and sentences, for corpora and for texts to tag.

With "words" a token is a run of letters, digits and combining marks, or any other single character that is not a
blank. With "blanks" tokens are separated by blanks. A line is a sentence.
"""

import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Places

TokenRule = Literal["words", "blanks"]

# Kinds of characters.
_BLANK, _WORD, _OTHER = range(3)


@dataclass(frozen=True, eq=False, slots=True)
class TextTokens:
    """The tokens and sentences of a text."""

    starts: Places  # first character of each token
    stops: Places  # character after each token
    ends: Places  # tokens up to the end of each sentence


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint32, copy=False)


def _kind(point: int) -> int:
    character = chr(point)
    if character.isspace() or character == "\ufeff":
        return _BLANK
    return _WORD if character.isalnum() or unicodedata.category(character)[0] == "M" else _OTHER


def tokenize(text: str, rule: TokenRule) -> TextTokens:
    """Return the tokens and sentences of a text. Each distinct character is classified once."""
    points = code_points(text)
    distinct, indices = np.unique(points, return_inverse=True)
    kinds = np.array([_kind(point) for point in distinct.tolist()], np.int8)[indices]
    if rule == "blanks":
        kinds = np.minimum(kinds, _WORD)
    before = np.concatenate([np.full(1, _BLANK, np.int8), kinds[:-1]])
    after = np.concatenate([kinds[1:], np.full(1, _BLANK, np.int8)])
    starts = np.flatnonzero((kinds != _BLANK) & ((kinds != before) | (kinds == _OTHER)))
    stops = np.flatnonzero((kinds != _BLANK) & ((kinds != after) | (kinds == _OTHER))) + 1
    newlines = np.flatnonzero(points == 10)
    ends = np.unique(np.append(np.searchsorted(starts, newlines), starts.size))
    return TextTokens(starts, stops, ends[ends > 0].astype(np.int64))
