"""Stops that belong to a word, and the parts that a corpus splits from words: both need lists of strings.

The lists hold what is frequent in news text in English, Spanish, Dutch, German and French. Only words before a stop, or
with an apostrophe, are looked up.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Places
from tagsmith.core.corpus.text import kinds as k
from tagsmith.core.corpus.text.words import Kinds, Points

#: Abbreviations that seldom end a sentence.
_BEFORE_WORDS = frozenset(
    "Mr Mrs Ms Messrs Dr Drs Prof St Ste Rev Hon Gen Col Maj Capt Cmdr Lt Sgt Cpl Pvt Sen Rep Gov Pres Supt Det Adm "
    "Sr Sra Srta Sres Dn Dña Excmo Excma Ilmo Ud Uds Vd Vds Fdo Avda Ctra Dhr Mevr Mw Mej drs ir ing mr dr prof Jhr "
    "Hr Hrn Frl Dipl Ing Mme Mlle Mgr vs bzw ca geb Nov Dec Jan Feb Aug Sept Oct Mt Ft cf bijv resp vgl d.h "
    "Inc Corp Co Ltd Bros Jr Assn Dept Univ Cía etc enz usw".split()
)
#: What a number follows.
_BEFORE_DIGITS = frozenset(
    "No Nos no nos Nr nr núm Núm art Art Fig fig vol Vol p pp pág págs blz cap sec Sec ch Ch tel Tel Apr Mar Jun Jul "
    "Jan Feb Aug Sep Sept Oct Nov Dec al".split()
)
#: Words that begin a sentence far more often than a name, after a stop that could belong to an abbreviation.
_BEGINNERS = frozenset(
    "The He She It They We You In On At But And This That These Those There When If As For After However His Her Their "
    "El La Los Las En Pero Por Según Un Una No Se Het De Een Ik Hij Zij Dat Dit Maar En Der Die Das Ein Eine Er Sie Es "
    "Le Les Il Elle Ce Cette Mais".split()
)

#: What English corpora split from the end of words, and French and Italian ones from their beginning.
ENDINGS = ("'s", "n't", "'re", "'ve", "'ll", "'d", "'m")
BEGINNINGS = ("l'", "d'", "qu'", "c'", "s'", "j'", "n'", "m'", "t'", "un'", "dell'", "all'", "nell'")
CLITICS = frozenset((*ENDINGS, *BEGINNINGS))

Flags = NDArray[np.bool_]


def join_stops(
    text: str, points: Points, kinds: Kinds, starts: Places, stops: Places
) -> tuple[Places, Places]:
    """Join abbreviations and initials with the stop after them, if the line goes on."""
    if starts.size < 3:
        return starts, stops
    dot = (points[starts] == ord(".")) & (stops - starts == 1)
    line = np.cumsum((kinds & k.NEWLINE) != 0)
    joined = (kinds[starts[:-2]] & k.LETTER != 0) & dot[1:-1] & (stops[:-2] == starts[1:-1])
    joined &= (line[starts[1:-1]] == line[starts[2:]]) & (starts[2:] > stops[1:-1])
    words = np.flatnonzero(joined)
    before = np.where(words > 0, kinds[starts[words - 1]], k.UPPER)
    places = (starts[words], stops[words], before, kinds[starts[words + 2]])
    found = zip(*(each.tolist() for each in places), strict=True)
    takes = [_takes_stop(text[start:stop], left, right) for start, stop, left, right in found]
    words = words[np.array(takes, np.bool_)]
    kept = np.ones(starts.size, np.bool_)
    kept[words + 1] = False
    stops[words] += 1
    return starts[kept], stops[kept]


def _takes_stop(word: str, before: int, after: int) -> bool:
    """Whether a stop after the word belongs to it, by the kinds of the tokens before and after."""
    if len(word) == 1 and word.isupper():
        # "I" after a small word is the pronoun.
        return (after & k.LOWER) != 0 or ((after & k.UPPER) != 0 and not (word == "I" and before & k.LOWER))
    if after & k.DIGIT and word in _BEFORE_DIGITS:
        return True
    return word in _BEFORE_WORDS and (after & (k.LETTER | k.DIGIT | k.SINGLE)) != 0


def quiet_stops(text: str, points: Points, kinds: Kinds, starts: Places, stops: Places) -> Flags:
    """Return the tokens that are a word with its own stop, which ends no sentence."""
    quiet: Flags = (points[stops - 1] == ord(".")) & (kinds[starts] & k.WORD != 0)
    words = np.flatnonzero(quiet)
    after = np.minimum(
        words + 1, starts.size - 1
    )  # nothing follows the last token, which ends a sentence anyway
    found = zip(
        *(each.tolist() for each in (starts[words], stops[words], starts[after], stops[after])), strict=True
    )
    quiet[words] = [_keeps_going(text[a : b - 1], text[c:d]) for a, b, c, d in found]
    return quiet


def _keeps_going(word: str, after: str) -> bool:
    if len(word) == 1:
        return word.isupper() and word != "I"
    if word in _BEFORE_DIGITS and after[:1].isdecimal():
        return True
    known = word in _BEFORE_WORDS or ("." in word and len(word.rpartition(".")[2]) == 1)
    return known and after not in _BEGINNERS


def split_clitics(
    text: str, kinds: Kinds, starts: Places, stops: Places, clitics: Sequence[str]
) -> tuple[Places, Places]:
    """Split the given parts from words: `'s` from the end, `l'` from the beginning."""
    places = np.flatnonzero(kinds & k.APOSTROPHE)
    tokens = np.searchsorted(starts, places, "right") - 1
    inside = (tokens >= 0) & (places > starts[tokens]) & (places < stops[tokens])
    cuts: list[int] = []
    chosen = np.unique(tokens[inside])
    for start, stop in zip(starts[chosen].tolist(), stops[chosen].tolist(), strict=True):
        cuts.extend(_cuts(text, start, stop, clitics))
    at = np.array(cuts, np.int64)
    return np.sort(np.concatenate([starts, at])), np.sort(np.concatenate([stops, at]))


def _cuts(text: str, start: int, stop: int, clitics: Iterable[str]) -> list[int]:
    """Return where to cut one token."""
    word = text[start:stop].lower().replace("\u2019", "'")
    if len(word) != stop - start:  # lower case has another length, as of some capital letters with dots
        return []
    for part in clitics:
        if part.endswith("'") and word.startswith(part) and len(word) > len(part):
            return [start + len(part)]
        if not part.endswith("'") and word.endswith(part) and len(word) > len(part):
            return [stop - len(part)]
    return []
