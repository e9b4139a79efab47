"""Version 1 of the tokenizers, which models keep that were trained before versions.

With "words" a token is a run of letters, digits and combining marks, or any other single character that is not a
blank. With "blanks" tokens are separated by blanks. With "characters" every character but white space is a token. A
line is a sentence.
"""

import unicodedata
from typing import Literal

import numpy as np

from tagsmith.core.base.arrays import Places
from tagsmith.core.corpus.text.kinds import code_points

# Kinds of characters.
_BLANK, _WORD, _OTHER = range(3)


def _kind(point: int) -> int:
    character = chr(point)
    if character.isspace() or character == "\ufeff":
        return _BLANK
    return _WORD if character.isalnum() or unicodedata.category(character)[0] == "M" else _OTHER


def _character_kind(point: int) -> int:
    return _BLANK if chr(point).isspace() else _OTHER


def split(
    text: str, rule: Literal["words", "blanks", "characters", "pattern"]
) -> tuple[Places, Places, Places]:
    """Return the start and stop of each token, and the tokens up to the end of each sentence."""
    points = code_points(text)
    distinct, indices = np.unique(points, return_inverse=True)
    kind_of = _character_kind if rule == "characters" else _kind
    kinds = np.array([kind_of(point) for point in distinct.tolist()], np.int8)[indices]
    if rule == "blanks":
        kinds = np.minimum(kinds, _WORD)
    before = np.concatenate([np.full(1, _BLANK, np.int8), kinds[:-1]])
    after = np.concatenate([kinds[1:], np.full(1, _BLANK, np.int8)])
    starts = np.flatnonzero((kinds != _BLANK) & ((kinds != before) | (kinds == _OTHER)))
    stops = np.flatnonzero((kinds != _BLANK) & ((kinds != after) | (kinds == _OTHER))) + 1
    newlines = np.flatnonzero(points == 10)
    ends = np.unique(np.append(np.searchsorted(starts, newlines), starts.size))
    return starts, stops, ends[ends > 0].astype(np.int64)
