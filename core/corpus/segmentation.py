"""Words as labels of their characters, and back: the codings of word segmentation.

A word of characters c1 ... cn is coded by the place of each character in it:

| coding | labels |
|---|---|
| 2 | B I ... I |
| 4 | S alone; else B M ... M E |
| 6 | S alone; else B B2 B3 M ... M E, the last always E |

(Zhao, Huang, Li and Lu 2010, "A unified character-based tagging framework for Chinese word segmentation", section 3.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Ids, Places

Coding = Literal[2, 4, 6]

#: Labels of each coding; a code is a place in these.
LABELS: dict[Coding, tuple[str, ...]] = {
    2: ("B", "I"),
    4: ("B", "M", "E", "S"),
    6: ("B", "B2", "B3", "M", "E", "S"),
}

#: Labels with which a word begins, whatever stood before.
_BEGINS = frozenset({"B", "S"})

#: Labels after which a word cannot go on.
_ENDS = frozenset({"E", "S"})

Flags = NDArray[np.bool_]


def encode(lengths: Places, coding: Coding) -> Ids:
    """The code of every character of words that have `lengths` characters each, all at least one."""
    names = LABELS[coding]
    stops = np.cumsum(lengths)
    place = np.arange(int(lengths.sum())) - np.repeat(stops - lengths, lengths)
    if coding == 2:
        return (place > 0).astype(np.int32)
    left = np.repeat(lengths, lengths) - place - 1  # characters of the word after this one
    # B, B2, B3 and M, by the place; a B is never the last of several.
    codes = np.minimum(place, names.index("M"))
    codes[left == 0] = names.index("E")
    codes[(left == 0) & (place == 0)] = names.index("S")
    return codes.astype(np.int32)


@dataclass(frozen=True, slots=True)
class Word:
    """Characters `start` to `stop` - 1 are a word; `tag` is its part of speech where labels carry one."""

    start: int
    stop: int
    tag: str | None


def is_coding(names: Sequence[str]) -> bool:
    """Whether labels are of a coding here, with tags or without."""
    positions = {split(name)[0] for name in names}
    return bool(positions) and any(positions <= set(labels) for labels in LABELS.values())


def split(label: str) -> tuple[str, str | None]:
    """(position, tag) of a label such as `B` or `B-NN`."""
    position, hyphen, tag = label.partition("-")
    return position, tag if hyphen else None


def word_starts(names: Sequence[str], labels: Ids, offsets: Places) -> Flags:
    """Whether a word begins at each character; `labels` are ids in `names`, sentences as in `offsets`.

    Any labels give words, also such as no words would have been coded by: a word begins at B and S, after E and S, at
    the start of a sentence, and where the tag changes.
    """
    parts = [split(name) for name in names]
    tags = {tag: number for number, tag in enumerate(dict.fromkeys(tag for _, tag in parts))}
    begins = np.array([position in _BEGINS for position, _ in parts], np.bool_)
    ends = np.array([position in _ENDS for position, _ in parts], np.bool_)
    tag_of = np.array([tags[tag] for _, tag in parts], np.int64)
    starts = begins[labels]
    previous, current = labels[:-1], labels[1:]
    starts[1:] |= ends[previous] | (tag_of[previous] != tag_of[current])
    starts[offsets[:-1][np.diff(offsets) > 0]] = True
    return starts


def words_of(labels: Sequence[str]) -> list[Word]:
    """The words of one sentence."""
    names = list(dict.fromkeys(labels))
    place = {name: number for number, name in enumerate(names)}
    ids = np.array([place[label] for label in labels], np.int32)
    starts = np.flatnonzero(word_starts(names, ids, np.array([0, ids.size])))
    stops = np.append(starts[1:], ids.size)
    return (
        [
            Word(start, stop, split(labels[start])[1])
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        if labels
        else []
    )
