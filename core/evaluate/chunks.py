"""Where chunks begin and end in a sequence of labels, by the rules of the CoNLL-2000 scorer `conlleval`.

A label is a tag, a hyphen and a type. Whether a chunk ends before a token or starts at it depends on that token's and
the previous token's tag and type only, which lets one set of rules read IOB1, IOB2, IOE1, IOE2 and brackets without
being told which (Tjong Kim Sang and Veenstra 1999).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TAGS = ("O", "B", "I", "E", "S", "[", "]", ".")
_O, _B, _I, _E, _S, _OPEN, _CLOSE, _DOT = range(len(_TAGS))
_OTHER = len(_TAGS)

#: Tags that say where a token stands in a chunk. A label set without any is one of plain classes, such as parts of
#: speech. (A full stop is not listed: it is a part of speech far more often than a tag.)
_POSITIONS = frozenset({"B", "I", "E", "S", "M", "[", "]"})

_BILOU = frozenset({"B", "I", "L", "O", "U"})

_START_PAIRS = ((_B, _B), (_I, _B), (_O, _B), (_O, _I), (_E, _E), (_E, _I), (_O, _E))
_END_PAIRS = ((_B, _B), (_B, _O), (_I, _B), (_I, _O), (_E, _E), (_E, _I), (_E, _O))

Flags = NDArray[np.bool_]


def _table(pairs: Sequence[tuple[int, int]]) -> Flags:
    table = np.zeros((_OTHER + 1, _OTHER + 1), np.bool_)  # [previous tag, tag]
    for previous, tag in pairs:
        table[previous, tag] = True
    return table


@dataclass(frozen=True, eq=False, slots=True)
class ChunkRules:
    """The rules for one set of labels; id `len(labels)` stands for the break between sentences."""

    tags: NDArray[np.int64]  # (labels + 1,): code of each label's tag
    types: NDArray[np.int64]  # (labels + 1,): place of its type in `type_names`; the empty type is 0
    type_names: tuple[str, ...]
    start_table: Flags
    end_table: Flags

    @classmethod
    def of(cls, labels: Sequence[str], *, closed: bool = False) -> "ChunkRules":
        """Rules for these labels.

        Some kinds of label sets are beyond conlleval's own rules. Plain classes are scored as its option -r does,
        every token a chunk of its class. With a tag S (single) or M (middle) the set is BIOES or BMES: S is a chunk
        of its own, M means I (and so do B2 and B3 of word segmentation), and a B after an E begins a chunk. With
        L or U, and no tag beyond those of BILOU, L means E and U means S. `closed` says
        that the set is one of these though it lacks the tag that tells.
        """
        parts = [_parse(label) for label in labels]
        tags = {tag for tag, _ in parts}
        if not tags & _POSITIONS:
            parts = [("O", "") if label == "O" else ("B", label) for label in labels]
        codes = {tag: code for code, tag in enumerate(_TAGS)}
        singles = closed or bool(tags & {"S", "M", "B2"})
        if tags <= _BILOU and tags & {"L", "U"}:
            singles = True
            codes |= {"L": _E, "U": _S}
        if singles:
            codes |= dict.fromkeys(("M", "B2", "B3"), _I)
        type_names = tuple(dict.fromkeys(["", *(kind for _, kind in parts)]))
        place = {name: number for number, name in enumerate(type_names)}
        return cls(
            np.array([*(codes.get(tag, _OTHER) for tag, _ in parts), _O], np.int64),
            np.array([*(place[kind] for _, kind in parts), 0], np.int64),
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
    """(tag, type): cut at the first hyphen, so that types may have hyphens; without one all is tag."""
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
    """Where chunks stand, by token; all arrays are (tokens,)."""

    first: Flags  # the token begins a chunk
    last: Flags  # it ends one
    inside: Flags  # it is in one
    types: NDArray[np.int64]  # place of its type in `type_names`
    type_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        *,
        closed: bool = False,
    ) -> "Chunks":
        """The chunks of labels `ids` in sentences `offsets[i]:offsets[i + 1]`; `closed` as in `ChunkRules.of`."""
        rules = ChunkRules.of(labels, closed=closed)
        row, token = with_pauses(ids, offsets, len(labels))
        starts, ends, types = boundaries(rules, row, len(labels))
        # A place is inside if the last thing that happened up to it is a start; a break ends whatever is open.
        happened = np.where(starts | ends, np.arange(row.size), 0)
        inside = starts[np.maximum.accumulate(happened)] if row.size else starts
        last = np.zeros(row.size, np.bool_)
        last[:-1] = inside[:-1] & (starts[1:] | ~inside[1:])
        return cls(starts[token], last[token], inside[token], types[token], rules.type_names)


def with_pauses(
    ids: NDArray[np.int32], offsets: NDArray[np.int64], pause: int
) -> tuple[NDArray[np.int64], Flags]:
    """(the labels of all sentences in one row, the break `pause` after each sentence; where tokens are)."""
    pauses = offsets[1:] + np.arange(offsets.size - 1)
    row = np.full(ids.size + pauses.size, pause, np.int64)
    token = np.ones(row.size, np.bool_)
    token[pauses] = False
    row[token] = ids
    return row, token


def boundaries(
    rules: ChunkRules, row: NDArray[np.int64], pause: int
) -> tuple[Flags, Flags, NDArray[np.int64]]:
    """(a chunk starts here, one ends before here, type here) for each place of the row."""
    previous = np.concatenate([np.array([pause], np.int64), row[:-1]])
    return rules.starts(previous, row), rules.ends(previous, row), rules.types[row]
