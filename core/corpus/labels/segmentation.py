"""The codings of word segmentation: words as labels of their characters, and back.

The label of a character is its position in the word:

| coding | labels |
|---|---|
| 2 | B I ... I |
| 4 | a single character S; otherwise B M ... M E |
| 6 | a single character S; otherwise B B2 B3 M ... M E, where the last is always E |

(Zhao, Huang, Li and Lu 2010, "A unified character-based tagging framework for Chinese word segmentation", section 3.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places

Coding = Literal[2, 4, 6]

#: The labels of each coding; a code is an index into these.
LABELS: dict[Coding, tuple[str, ...]] = {
    2: ("B", "I"),
    4: ("B", "M", "E", "S"),
    6: ("B", "B2", "B3", "M", "E", "S"),
}

#: Labels that begin a word, whatever comes before.
_BEGINS = frozenset({"B", "S"})

#: Labels that end a word.
_ENDS = frozenset({"E", "S"})

Flags = NDArray[np.bool_]


def encode(lengths: Places, coding: Coding) -> Ids:
    """Return the code of every character of words with these lengths, which are at least 1."""
    names = LABELS[coding]
    stops = np.cumsum(lengths)
    position = np.arange(int(lengths.sum())) - np.repeat(stops - lengths, lengths)
    if coding == 2:
        return (position > 0).astype(np.int32)
    left = np.repeat(lengths, lengths) - position - 1  # characters after this one in the word
    # B, B2, B3 and M by position; then E and S for the last character.
    codes = np.minimum(position, names.index("M"))
    codes[left == 0] = names.index("E")
    codes[(left == 0) & (position == 0)] = names.index("S")
    return codes.astype(np.int32)


@dataclass(frozen=True, slots=True)
class Word:
    """Characters `start` to `stop` - 1 are a word; `tag` is its part of speech if labels have tags."""

    start: int
    stop: int
    tag: str | None


def is_coding(names: Sequence[str]) -> bool:
    """Whether all labels belong to one of the codings, with or without tags."""
    positions = {split(name)[0] for name in names}
    return bool(positions) and any(positions <= set(labels) for labels in LABELS.values())


def codes_words(names: Sequence[str]) -> bool:
    """Whether the labels only segment text into words. With tags, they can be those of chunks as well."""
    return is_coding(names) and all(split(name)[1] is None for name in names)


def split(label: str) -> tuple[str, str | None]:
    """Return (position, tag) of a label such as `B` or `B-NN`."""
    position, hyphen, tag = label.partition("-")
    return position, tag if hyphen else None


def word_starts(names: Sequence[str], labels: Ids, offsets: Places) -> Flags:
    """Return whether a word begins at each character; `labels` are ids into `names`.

    Any sequence of labels gives words, even an inconsistent one: a word begins at B and S, after E and S, at the start
    of a sentence, and where the tag changes.
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
    """Return the words of one sentence."""
    names = list(dict.fromkeys(labels))
    id_of = {name: number for number, name in enumerate(names)}
    ids = np.array([id_of[label] for label in labels], np.int32)
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
