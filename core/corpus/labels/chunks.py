"""Where chunks begin and end in a sequence of labels, by the rules of the CoNLL-2000 scorer `conlleval`.

A label is a tag, a hyphen and a type, or a tag alone. Whether a chunk ends before a token or starts at it depends only
on the tag and type of that token and of the previous one. So one set of rules reads IOB1, IOB2, IOE1, IOE2 and brackets
(Tjong Kim Sang and Veenstra 1999). `codes_chunks` decides whether labels code chunks at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TAGS = ("O", "B", "I", "E", "S", "[", "]", ".")
_O, _B, _I, _E, _S, _OPEN, _CLOSE, _DOT = range(len(_TAGS))
_OTHER = len(_TAGS)

#: Tags that give the position of a token in its chunk. (A full stop is not listed: it is far more often a part of
#: speech.)
_POSITIONS = frozenset({"B", "I", "E", "S", "M", "[", "]"})

_BILOU = frozenset({"B", "I", "L", "O", "U"})
_BIOES = frozenset({"B", "I", "E", "S", "M", "B2", "B3", "O"})
_BRACKETS = frozenset({"[", "]", "O"})

#: Tags that continue a chunk which B began.
_CONTINUES = frozenset({"I", "M", "E", "L"})

_START_PAIRS = ((_B, _B), (_I, _B), (_O, _B), (_O, _I), (_E, _E), (_E, _I), (_O, _E))
_END_PAIRS = ((_B, _B), (_B, _O), (_I, _B), (_I, _O), (_E, _E), (_E, _I), (_E, _O))

Flags = NDArray[np.bool_]


def codes_chunks(labels: Sequence[str]) -> bool:
    """Whether labels code chunks; otherwise they are plain classes, such as parts of speech.

    One label with a position and a type, such as `B-NP`, is enough. Without types a single letter can be a class of its
    own: a part of speech `M`, say. Untyped labels code chunks if all of them are tags of one coding and they include
    O, or B and a tag that continues it.
    """
    parts = [_parse(label) for label in labels]
    tags = {tag for tag, _ in parts}
    positions = _POSITIONS | ({"L", "U"} if tags <= _BILOU else set())
    if any(kind and tag in positions for tag, kind in parts):
        return True
    if not tags & positions or not any(tags <= coding for coding in (_BILOU, _BIOES, _BRACKETS)):
        return False
    return "O" in tags or bool("B" in tags and tags & _CONTINUES)


def _table(pairs: Sequence[tuple[int, int]]) -> Flags:
    table = np.zeros((_OTHER + 1, _OTHER + 1), np.bool_)  # [previous tag, tag]
    for previous, tag in pairs:
        table[previous, tag] = True
    return table


@dataclass(frozen=True, eq=False, slots=True)
class ChunkRules:
    """The rules for one set of labels. The id `len(labels)` means a break between sentences."""

    tags: NDArray[np.int64]  # (labels + 1,): code of each label's tag
    types: NDArray[np.int64]  # (labels + 1,): index of its type in `type_names`; 0 is the empty type
    type_names: tuple[str, ...]
    start_table: Flags
    end_table: Flags

    @classmethod
    def of(cls, labels: Sequence[str], *, coded: bool = False, closed: bool = False) -> "ChunkRules":
        """Rules for these labels.

        Some label sets are beyond conlleval's own rules. Plain classes are scored as by its option -r: every token is
        a chunk of its class. With a tag S (single) or M (middle) the set is BIOES or BMES: S is a chunk of its own,
        M means I (and so do B2 and B3 of word segmentation), and a B after an E begins a chunk. With L or U, and no
        tag beyond those of BILOU, L means E and U means S.

        The caller may know more than the labels show: `coded` that they code chunks, `closed` that they are of
        BIOES, BMES or BILOU.
        """
        parts = [_parse(label) for label in labels]
        tags = {tag for tag, _ in parts}
        if not coded and not codes_chunks(labels):
            parts = [("O", "") if label == "O" else ("B", label) for label in labels]
        codes = {tag: code for code, tag in enumerate(_TAGS)}
        singles = closed or bool(tags & {"S", "M", "B2"})
        if tags <= _BILOU and tags & {"L", "U"}:
            singles = True
            codes |= {"L": _E, "U": _S}
        if singles:
            codes |= dict.fromkeys(("M", "B2", "B3"), _I)
        type_names = tuple(dict.fromkeys(["", *(kind for _, kind in parts)]))
        type_ids = {name: number for number, name in enumerate(type_names)}
        return cls(
            np.array([*(codes.get(tag, _OTHER) for tag, _ in parts), _O], np.int64),
            np.array([*(type_ids[kind] for _, kind in parts), 0], np.int64),
            type_names,
            _starts(singles),
            _ends(singles),
        )

    def starts(self, previous: NDArray[np.int64], current: NDArray[np.int64]) -> Flags:
        """Whether a chunk starts at each label of `current`, given the one before it."""
        tag = self.tags[current]
        changed = self.types[previous] != self.types[current]
        by_type: Flags = changed & (tag != _O) & (tag != _DOT)
        return by_type | self.start_table[self.tags[previous], tag]

    def ends(self, previous: NDArray[np.int64], current: NDArray[np.int64]) -> Flags:
        """Whether a chunk ends before each label of `current`, given the one before it."""
        tag = self.tags[previous]
        changed = self.types[previous] != self.types[current]
        by_type: Flags = changed & (tag != _O) & (tag != _DOT)
        return by_type | self.end_table[tag, self.tags[current]]


def _parse(label: str) -> tuple[str, str]:
    """Return (tag, type), split at the first hyphen, so that types may contain hyphens."""
    tag, _, kind = label.partition("-")
    return tag, kind


def _starts(singles: bool) -> Flags:
    table = _table(_START_PAIRS)
    table[:, [_OPEN, _CLOSE, _S]] = True
    table[_S, [_B, _I, _E]] = True
    table[_E, _B] = singles
    return table


def _ends(singles: bool) -> Flags:
    table = _table(_END_PAIRS)
    table[[_OPEN, _CLOSE, _S], :] = True  # Chunks of one token.
    table[[_B, _I, _E], _S] = True
    table[_E, _B] = singles
    return table


@dataclass(frozen=True, eq=False, slots=True)
class Chunks:
    """The chunks of a corpus, per token; all arrays are (tokens,)."""

    first: Flags  # the token begins a chunk
    last: Flags  # it ends a chunk
    inside: Flags  # it is in a chunk
    types: NDArray[np.int64]  # index of its type in `type_names`
    type_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        *,
        coded: bool = False,
        closed: bool = False,
    ) -> "Chunks":
        """Read the chunks of labels `ids` in sentences `offsets[i]:offsets[i + 1]`; flags as in `ChunkRules.of`."""
        rules = ChunkRules.of(labels, coded=coded, closed=closed)
        row, token = with_pauses(ids, offsets, len(labels))
        starts, ends, types = boundaries(rules, row, len(labels))
        # A token is inside a chunk if the latest event up to it is a start. A break ends any open chunk.
        events = np.where(starts | ends, np.arange(row.size), 0)
        inside = starts[np.maximum.accumulate(events)] if row.size else starts
        last = np.zeros(row.size, np.bool_)
        last[:-1] = inside[:-1] & (starts[1:] | ~inside[1:])
        return cls(starts[token], last[token], inside[token], types[token], rules.type_names)


def with_pauses(
    ids: NDArray[np.int32], offsets: NDArray[np.int64], pause: int
) -> tuple[NDArray[np.int64], Flags]:
    """Return (the labels of all sentences in one row, with `pause` after each sentence; where the tokens are)."""
    pauses = offsets[1:] + np.arange(offsets.size - 1)
    row = np.full(ids.size + pauses.size, pause, np.int64)
    token = np.ones(row.size, np.bool_)
    token[pauses] = False
    row[token] = ids
    return row, token


def boundaries(
    rules: ChunkRules, row: NDArray[np.int64], pause: int
) -> tuple[Flags, Flags, NDArray[np.int64]]:
    """Return (a chunk starts here, a chunk ends before here, type) for each element of the row."""
    previous = np.concatenate([np.array([pause], np.int64), row[:-1]])
    return rules.starts(previous, row), rules.ends(previous, row), rules.types[row]
