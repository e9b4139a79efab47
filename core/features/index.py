"""The feature index: an open-addressing table from a 64-bit mix of (template, value ids) to an attribute row.

No string is formed here. A key is the finished mix of a template's identity and the codes of its values; with ten
million attributes the chance that any two share a key is about 3 in a million; nothing is stored to tell them apart.

Codes of values in a column: a vocabulary id (>= 0), `UNKNOWN` for a value the vocabulary lacks, or a boundary code
for a place outside the sentence. A template that meets UNKNOWN makes no feature there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpus.vocabulary import Vocabulary
from core.features.settled import Features, Place
from core.features.template import MAX_ROW, Template, wapiti_boundary
from core.inference import vector as v
from core.jit import inlined, inner, kernel, readonly

UNKNOWN = -1

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_N5 = np.uint64(0x52DCE729)


class Slots(NamedTuple):
    """Templates of one kind as arrays: template t joins slots `starts[t]:starts[t+1]`."""

    seeds: NDArray[np.uint64]  # (templates,) mix of the template's identity
    starts: NDArray[np.int32]  # (templates + 1,)
    rows: NDArray[np.int32]  # (slots,)
    columns: NDArray[np.int32]  # (slots,)
    anchors: NDArray[np.int32]  # (slots,) what a row counts from: _TOKEN, _START or _END
    outside: NDArray[
        np.int32
    ]  # (slots, 2 * MAX_ROW) codes of the places before a sentence, then of those after it
    skipped: int  # tokens at the start of a sentence without features: 1 for edges, which need a token before


# What a row counts from.
_TOKEN, _START, _END = range(3)
_ANCHORS = {"token": _TOKEN, "start": _START, "end": _END}


def boundary_code(row: int) -> int:
    """Code a place so many tokens outside a sentence; even before its start, odd after its end."""
    return 2 * row if row < 0 else -2 * row - 1


@inlined
def code_at(slots: Slots, s: int, codes: NDArray[np.int32], begin: int, end: int, token: int) -> int:
    """Code what slot s sees at a token of the sentence `begin:end`: the column's value there, else a boundary."""
    anchor = slots.anchors[s]
    position = slots.rows[s] + (token if anchor == _TOKEN else begin if anchor == _START else end)
    if position < begin:
        return int(slots.outside[s, begin - position - 1])
    if position >= end:
        return int(slots.outside[s, MAX_ROW + position - end])
    return int(codes[slots.columns[s], position])


def boundary_row(code: int) -> int:
    """Say which boundary a code means: -1 just before the start, +1 just after the end."""
    return code // 2 if code % 2 == 0 else (-code - 1) // 2


def slots_of(features: Features, vocabularies: Sequence[Vocabulary]) -> Slots:
    """Pack the settled templates of single labels for the kernels; `vocabularies` are those that code the columns."""
    return _packed(features, features.unigrams, features.slots, vocabularies, 0)


def edge_slots_of(features: Features, vocabularies: Sequence[Vocabulary]) -> Slots:
    """Pack the settled templates of label pairs."""
    return _packed(features, features.rich, features.edge_slots, vocabularies, 1)


def _packed(
    features: Features,
    templates: tuple[Template, ...],
    slots: tuple[tuple[Place, ...], ...],
    vocabularies: Sequence[Vocabulary],
    skipped: int,
) -> Slots:
    flat = [(template, place) for template, places in zip(templates, slots, strict=True) for place in places]
    outside = [_outside(template, place, features, vocabularies) for template, place in flat]
    return Slots(
        seeds=readonly(np.array([_seed(t.identity) for t in templates], np.uint64), np.uint64),
        starts=readonly(np.cumsum([0, *map(len, slots)]), np.int32),
        rows=readonly(np.array([place.slot.row for _, place in flat]), np.int32),
        columns=readonly(np.array([place.column for _, place in flat]), np.int32),
        anchors=readonly(np.array([_ANCHORS[place.slot.anchor] for _, place in flat]), np.int32),
        outside=readonly(np.array(outside).reshape(len(flat), 2 * MAX_ROW), np.int32),
        skipped=skipped,
    )


def _outside(
    template: Template, place: Place, features: Features, vocabularies: Sequence[Vocabulary]
) -> list[int]:
    """Codes of the places outside a sentence, as a slot sees them."""
    rows = [min(distance, template.reach) * sign for sign in (-1, 1) for distance in range(1, MAX_ROW + 1)]
    derived = place.column - features.columns
    if not 0 <= derived < len(features.derived) or not features.derived[derived][1].outside:
        return [boundary_code(row) for row in rows]
    # The names of these places go through the column's function; what that gives is a value like any other.
    function = features.derived[derived][1].function()
    values = {row: function(wapiti_boundary(row)) for row in set(rows)}
    ids = {
        row: UNKNOWN if value is None else vocabularies[place.column].id_of(value)
        for row, value in values.items()
    }
    return [ids[row] for row in rows]


def _seed(text: str) -> int:
    """FNV-1a over the identity: stable everywhere, so that a model made on one machine serves on another."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


@inlined
def _rotated(x: np.uint64, r: int) -> np.uint64:
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@inlined
def _finished(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(33)
    h *= _M1
    h ^= h >> np.uint64(33)
    h *= _M2
    h ^= h >> np.uint64(33)
    return h if h != np.uint64(0) else np.uint64(1)  # 0 marks an empty cell


@inlined
def _mixed(h: np.uint64, code: Any) -> np.uint64:
    """Fold one value's code into the key."""
    k = np.uint64(code) * _C1
    k = _rotated(k, 31) * _C2
    return _rotated(h ^ k, 27) * np.uint64(5) + _N5


@inlined
def feature_key(
    slots: Slots, template: int, codes: NDArray[np.int32], begin: int, end: int, token: int
) -> np.uint64:
    """Mix the key of one template at one token of the sentence `begin:end`; 0 when it makes no feature there."""
    if token - begin < slots.skipped:
        return np.uint64(0)
    h = slots.seeds[template]
    for s in range(slots.starts[template], slots.starts[template + 1]):
        code = code_at(slots, s, codes, begin, end, token)
        if code == UNKNOWN:
            return np.uint64(0)
        h = _mixed(h, code)
    return _finished(h)


@kernel
def _keys(
    slots: Slots, templates: NDArray[np.int16], starts: NDArray[np.int64], values: NDArray[np.int32],
    keys: NDArray[np.uint64],
) -> None:  # fmt: skip
    for i in range(templates.shape[0]):
        h = slots.seeds[templates[i]]
        for k in range(starts[i], starts[i + 1]):
            h = _mixed(h, np.int64(values[k]))
        keys[i] = _finished(h)


def keys_of(
    slots: Slots, templates: NDArray[np.int16], starts: NDArray[np.int64], values: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """The keys of attributes given by their template and value codes: what `feature_key` finds in text."""
    keys = np.empty(len(templates), np.uint64)
    _keys(slots, readonly(templates, np.int16), readonly(starts, np.int64), readonly(values, np.int32), keys)
    return keys


def columns_of_values(
    slots: Slots, templates: NDArray[np.int16], starts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The column that each value of attributes belongs to, given by their template and where their values start."""
    arity = np.diff(starts)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], arity)
    return np.asarray(slots.columns[np.repeat(slots.starts[templates].astype(np.int64), arity) + within])


@inlined
def find(keys: NDArray[np.uint64], rows: NDArray[np.int32], key: np.uint64) -> int:
    """Look a key up: its row, or -1."""
    mask = np.uint64(keys.shape[0] - 1)
    cell = key & mask
    while keys[cell] != np.uint64(0):
        if keys[cell] == key:
            return int(rows[cell])
        cell = (cell + np.uint64(1)) & mask
    return -1


@inner
def _insert(keys: NDArray[np.uint64], rows: NDArray[np.int32], key: np.uint64, row: int) -> None:
    mask = np.uint64(keys.shape[0] - 1)
    cell = key & mask
    while keys[cell] != np.uint64(0):
        cell = (cell + np.uint64(1)) & mask
    keys[cell] = key
    rows[cell] = row


@kernel
def _collect(
    slots: Slots,
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    first_sentence: int,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    counts: NDArray[np.int64],
    seen_at: NDArray[np.int64],
    size: int,
    sentence_keys: NDArray[np.uint64],
    attributes: NDArray[np.int32],
) -> tuple[int, int]:
    """Number the features of the sentences from `first_sentence` on, until the table is half full.

    Returns the next sentence and the number of features so far; the caller grows the table and goes on. The keys of a
    sentence are all mixed, and their cells asked for, before the first is looked up.
    """
    mask = np.uint64(keys.shape[0] - 1)
    templates = slots.seeds.shape[0]
    for sentence in range(first_sentence, offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        if 2 * (size + (end - begin) * templates) > keys.shape[0]:
            return sentence, size
        for token in range(begin, end):
            for template in range(templates):
                key = feature_key(slots, template, codes, begin, end, token)
                sentence_keys[(token - begin) * templates + template] = key
                v.prefetch(keys, np.int64(key & mask))
        for token in range(begin, end):
            for template in range(templates):
                key = sentence_keys[(token - begin) * templates + template]
                if key == np.uint64(0):
                    attributes[token, template] = -1
                    continue
                cell = key & mask
                while keys[cell] != np.uint64(0) and keys[cell] != key:
                    cell = (cell + np.uint64(1)) & mask
                if keys[cell] == np.uint64(0):
                    keys[cell] = key
                    rows[cell] = size
                    counts[size] = 0
                    seen_at[size] = token * templates + template
                    size += 1
                row = rows[cell]
                counts[row] += 1
                attributes[token, template] = row
    return offsets.shape[0] - 1, size


@kernel
def _rehash(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    new_keys: NDArray[np.uint64],
    new_rows: NDArray[np.int32],
) -> None:
    for cell in range(keys.shape[0]):
        if keys[cell] != np.uint64(0):
            _insert(new_keys, new_rows, keys[cell], rows[cell])


@kernel
def _renumbered(
    attributes: NDArray[np.int32],
    new_row: NDArray[np.int32],
    starts: NDArray[np.int64],
    flat: NDArray[np.int32],
) -> None:
    """Turn (tokens, templates) into rows of attributes a token, dropping those under the cutoff."""
    n = 0
    for token in range(attributes.shape[0]):
        starts[token] = n
        for template in range(attributes.shape[1]):
            old = attributes[token, template]
            if old >= 0 and new_row[old] >= 0:
                flat[n] = new_row[old]
                n += 1
    starts[attributes.shape[0]] = n


@kernel
def _looked_up(
    slots: Slots,
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    flat: NDArray[np.int32],
) -> None:
    n = 0
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        for token in range(begin, end):
            starts[token] = n
            for template in range(slots.seeds.shape[0]):
                key = feature_key(slots, template, codes, begin, end, token)
                if key != np.uint64(0):
                    row = find(keys, rows, key)
                    if row >= 0:
                        flat[n] = row
                        n += 1
    starts[offsets[offsets.shape[0] - 1]] = n


@dataclass(frozen=True)
class Table:
    """A frozen index: cells of (key, attribute row), capacity a power of two, at most half full."""

    keys: NDArray[np.uint64]
    rows: NDArray[np.int32]

    @staticmethod
    def of(keys: NDArray[np.uint64]) -> "Table":
        """Build the table of `keys`, whose rows are their positions."""
        cells, rows = _cells(_capacity(len(keys)))
        _fill(cells, rows, readonly(keys, np.uint64))
        return Table(readonly(cells, np.uint64), readonly(rows, np.int32))


@kernel
def _fill(cells: NDArray[np.uint64], rows: NDArray[np.int32], keys: NDArray[np.uint64]) -> None:
    for row in range(keys.shape[0]):
        _insert(cells, rows, keys[row], row)


def _capacity(entries: int) -> int:
    return max(16, 1 << (2 * entries - 1).bit_length()) if entries else 16


def _cells(capacity: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    return np.zeros(capacity, np.uint64), np.full(capacity, -1, np.int32)


@dataclass(frozen=True)
class Attributes:
    """The attributes of each token: token t has `rows[starts[t]:starts[t+1]]`."""

    starts: NDArray[np.int64]  # (tokens + 1,)
    rows: NDArray[np.int32]


def _attributes(starts: NDArray[np.int64], flat: NDArray[np.int32]) -> Attributes:
    used = flat if starts[-1] == len(flat) else flat[: starts[-1]].copy()
    return Attributes(readonly(starts, np.int64), readonly(used, np.int32))


@dataclass(frozen=True)
class FeatureIndex:
    """Attributes numbered by frequency (hot rows share cache lines), ties by first sight."""

    slots: Slots
    table: Table
    keys: NDArray[np.uint64]  # (attributes,)
    counts: NDArray[np.int64]  # (attributes,)
    #: Where each attribute was first seen, as token * templates + template: its values are read back from there.
    seen_at: NDArray[np.int64]

    @property
    def size(self) -> int:
        return len(self.keys)

    def look_up(self, codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> Attributes:
        """Find the attributes of another corpus, coded with the same vocabularies."""
        tokens, templates = int(offsets[-1]), len(self.slots.seeds)
        starts, flat = np.zeros(tokens + 1, np.int64), np.empty(tokens * templates, np.int32)
        _looked_up(self.slots, codes, offsets, self.table.keys, self.table.rows, starts, flat)
        return _attributes(starts, flat)


def build(
    slots: Slots, codes: NDArray[np.int32], offsets: NDArray[np.int64], cutoff: int
) -> tuple[FeatureIndex, Attributes]:
    """Number every feature of a corpus seen at least `cutoff` times, and give each token its attributes."""
    tokens, templates = int(offsets[-1]), len(slots.seeds)
    longest = int(np.max(np.diff(offsets), initial=0))
    attributes = np.empty((tokens, templates), np.int32)
    cells, rows = _cells(_capacity(max(tokens, longest * templates)))
    counts, seen_at = np.zeros(len(cells) // 2, np.int64), np.zeros(len(cells) // 2, np.int64)
    sentence_keys = np.empty(longest * templates, np.uint64)
    sentence, size = 0, 0
    while True:
        sentence, size = _collect(
            slots, codes, offsets, sentence, cells, rows, counts, seen_at, size, sentence_keys, attributes
        )
        if sentence == len(offsets) - 1:
            break
        grown, grown_rows = _cells(2 * len(cells))
        _rehash(cells, rows, grown, grown_rows)
        cells, rows = grown, grown_rows
        counts, seen_at = np.concatenate([counts, counts * 0]), np.concatenate([seen_at, seen_at * 0])
    keys = np.zeros(size, np.uint64)
    filled = cells != 0
    keys[rows[filled]] = cells[filled]
    return _by_frequency(slots, keys, counts[:size], seen_at[:size], cutoff, attributes)


def _by_frequency(
    slots: Slots,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    seen_at: NDArray[np.int64],
    cutoff: int,
    attributes: NDArray[np.int32],
) -> tuple[FeatureIndex, Attributes]:
    order = np.argsort(-counts, kind="stable")
    order = order[: int(np.searchsorted(-counts[order], -cutoff, side="right"))]
    new_row = np.full(len(counts), -1, np.int32)
    new_row[order] = np.arange(len(order), dtype=np.int32)
    starts, flat = np.zeros(len(attributes) + 1, np.int64), np.empty(attributes.size, np.int32)
    _renumbered(attributes, new_row, starts, flat)
    index = FeatureIndex(slots, Table.of(keys[order]), keys[order], counts[order], seen_at[order])
    return index, _attributes(starts, flat)
