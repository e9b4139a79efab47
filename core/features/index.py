"""The feature index: an open-addressing table from a 64-bit hash of (template, value codes) to an attribute.

No strings are built. A key is the hash of a template's identity and the codes of its values (see `columns.codes`).
Colliding keys are not detected: with ten million attributes, the probability that any two collide is about 3 in a
million. A template with an UNKNOWN value makes no feature.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base import simd as v
from tagsmith.core.base.errors import Invalid
from tagsmith.core.base.hash_table import Table, capacity_for, empty_cells, find, insert
from tagsmith.core.base.hashing import fnv1a, murmur_finish
from tagsmith.core.base.jit import inlined, kernel, readonly
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.features.columns.codes import UNKNOWN, boundary_code
from tagsmith.core.features.resolved import Features, ResolvedSlot
from tagsmith.core.features.templates.template import MAX_ROW, Template, wapiti_boundary

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_N5 = np.uint64(0x52DCE729)


class Slots(NamedTuple):
    """The templates of one kind as arrays. Template t joins the slots `starts[t]:starts[t+1]`."""

    seeds: NDArray[np.uint64]  # (templates,) the hash of the template's identity
    starts: NDArray[np.int32]  # (templates + 1,)
    rows: NDArray[np.int32]  # (slots,)
    columns: NDArray[np.int32]  # (slots,)
    anchors: NDArray[np.int32]  # (slots,) what the row is relative to: _TOKEN, _START or _END
    outside: NDArray[np.int32]  # (slots, 2 * MAX_ROW) codes of the positions before a sentence, then after it
    skipped: int  # tokens without features at the start: 1 for label pairs, -1 if the root before it has some


# What a row is relative to.
_TOKEN, _START, _END = range(3)
_ANCHORS = {"token": _TOKEN, "start": _START, "end": _END}


@inlined
def code_at(slots: Slots, s: int, codes: NDArray[np.int32], begin: int, end: int, token: int) -> int:
    """The code of slot s at a token of the sentence `begin:end`: the value of its column, or a boundary."""
    anchor = slots.anchors[s]
    position = slots.rows[s] + (token if anchor == _TOKEN else begin if anchor == _START else end)
    if position < begin:
        return int(slots.outside[s, begin - position - 1])
    if position >= end:
        return int(slots.outside[s, MAX_ROW + position - end])
    return int(codes[slots.columns[s], position])


def slots_of(features: Features, vocabularies: Sequence[Vocabulary]) -> Slots:
    """Pack the templates of single labels for kernels. `vocabularies` are those of the columns."""
    if features.structure == "tree":
        raise Invalid("Templates over arcs apply to trees, not to labels.", code="invalid_spec")
    return packed(features, features.unigrams, features.slots, vocabularies, 0)


def edge_slots_of(features: Features, vocabularies: Sequence[Vocabulary]) -> Slots:
    """Pack the templates of label pairs for kernels."""
    return packed(features, features.rich, features.edge_slots, vocabularies, 1)


def packed(
    features: Features,
    templates: tuple[Template, ...],
    slots: tuple[tuple[ResolvedSlot, ...], ...],
    vocabularies: Sequence[Vocabulary],
    skipped: int,
) -> Slots:
    """Pack templates over tokens for kernels."""
    flat = [(template, place) for template, places in zip(templates, slots, strict=True) for place in places]
    outside = [_outside(template, place, features, vocabularies) for template, place in flat]
    return Slots(
        seeds=readonly(np.array([fnv1a(t.identity) for t in templates], np.uint64), np.uint64),
        starts=readonly(np.cumsum([0, *map(len, slots)]), np.int32),
        rows=readonly(np.array([place.slot.row for _, place in flat]), np.int32),
        columns=readonly(np.array([place.column for _, place in flat]), np.int32),
        anchors=readonly(np.array([_ANCHORS[place.slot.anchor] for _, place in flat]), np.int32),
        outside=readonly(np.array(outside).reshape(len(flat), 2 * MAX_ROW), np.int32),
        skipped=skipped,
    )


def _outside(
    template: Template, place: ResolvedSlot, features: Features, vocabularies: Sequence[Vocabulary]
) -> list[int]:
    """The codes of the positions outside a sentence, as a slot reads them."""
    rows = [min(distance, template.reach) * sign for sign in (-1, 1) for distance in range(1, MAX_ROW + 1)]
    derived = place.column - features.columns
    if not 0 <= derived < len(features.derived) or not features.derived[derived][1].outside:
        return [boundary_code(row) for row in rows]
    # The names of these positions are derived like values.
    distinct = sorted(set(rows))
    derivation = features.derived[derived][1]
    values = dict(zip(distinct, derivation.values([wapiti_boundary(row) for row in distinct]), strict=True))
    ids = {
        row: UNKNOWN if value is None else vocabularies[place.column].id_of(value)
        for row, value in values.items()
    }
    return [ids[row] for row in rows]


@inlined
def _rotated(x: np.uint64, r: int) -> np.uint64:
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@inlined
def finished(h: np.uint64) -> np.uint64:
    """Make a key of a hash into which all values are mixed."""
    h = murmur_finish(h)
    return h if h != np.uint64(0) else np.uint64(1)  # 0 marks an empty cell


@inlined
def stirred(code: Any) -> np.uint64:
    """The code of a value, ready to be mixed into many hashes."""
    return _rotated(np.uint64(code) * _C1, 31) * _C2


@inlined
def mixed_in(h: np.uint64, k: np.uint64) -> np.uint64:
    """Mix a code that is stirred already into the hash."""
    return _rotated(h ^ k, 27) * np.uint64(5) + _N5


@inlined
def mixed(h: np.uint64, code: Any) -> np.uint64:
    """Mix the code of a value into the hash."""
    return mixed_in(h, stirred(code))


@inlined
def feature_key(
    slots: Slots, template: int, codes: NDArray[np.int32], begin: int, end: int, token: int
) -> np.uint64:
    """The key of a template at a token of the sentence `begin:end`, or 0 if it makes no feature there."""
    if token - begin < slots.skipped:
        return np.uint64(0)
    h = slots.seeds[template]
    for s in range(slots.starts[template], slots.starts[template + 1]):
        code = code_at(slots, s, codes, begin, end, token)
        if code == UNKNOWN:
            return np.uint64(0)
        h = mixed(h, code)
    return finished(h)


@kernel
def _keys(
    slots: Slots, templates: NDArray[np.int16], starts: NDArray[np.int64], values: NDArray[np.int32],
    keys: NDArray[np.uint64],
) -> None:  # fmt: skip
    for i in range(templates.shape[0]):
        h = slots.seeds[templates[i]]
        for k in range(starts[i], starts[i + 1]):
            h = mixed(h, np.int64(values[k]))
        keys[i] = finished(h)


def keys_of(
    slots: Slots, templates: NDArray[np.int16], starts: NDArray[np.int64], values: NDArray[np.int32]
) -> NDArray[np.uint64]:
    """The keys of attributes given by template and value codes, equal to those that `feature_key` computes in text."""
    keys = np.empty(len(templates), np.uint64)
    _keys(slots, readonly(templates, np.int16), readonly(starts, np.int64), readonly(values, np.int32), keys)
    return keys


def slots_of_values(
    slot_starts: NDArray[np.int32], templates: NDArray[np.int16], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The slot of each value of attributes that are given by their templates and the starts of their values."""
    first = slot_starts[templates] - starts[:-1]
    return np.asarray(np.repeat(first, np.diff(starts)) + np.arange(starts[-1]))


def columns_of_values(
    slots: Slots, templates: NDArray[np.int16], starts: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The column of each value of attributes that are given by their templates and the starts of their values."""
    return np.asarray(slots.columns[slots_of_values(slots.starts, templates, starts)])


class _Text(NamedTuple):
    """A coded corpus, and buffers for its keys and attributes."""

    codes: NDArray[np.int32]  # (columns, tokens)
    offsets: NDArray[np.int64]  # (sentences + 1,)
    keys: NDArray[np.uint64]  # (tokens of the longest sentence * templates,) scratch
    attributes: NDArray[np.int32]  # (tokens, templates) the attribute, or -1


class _Growing(NamedTuple):
    """A hash table of the features seen so far. The caller replaces it when it is half full."""

    keys: NDArray[np.uint64]  # (cells,)
    rows: NDArray[np.int32]  # (cells,)
    counts: NDArray[np.int64]  # (cells / 2,) occurrences of each feature
    seen_at: NDArray[np.int64]  # (cells / 2,) the first occurrence, as token * templates + template


@kernel
def _collect(slots: Slots, text: _Text, table: _Growing, first_sentence: int, size: int) -> tuple[int, int]:
    """Number the features of the sentences from `first_sentence` on, until the table is half full.

    `size` features have numbers already. Returns the next sentence and the new size. All keys of a sentence are
    computed, and their cells prefetched, before the first look-up.
    """
    codes, offsets, sentence_keys, attributes = text.codes, text.offsets, text.keys, text.attributes
    keys, rows, counts, seen_at = table.keys, table.rows, table.counts, table.seen_at
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
            insert(new_keys, new_rows, keys[cell], rows[cell])


@kernel
def _renumbered(
    attributes: NDArray[np.int32],
    new_row: NDArray[np.int32],
    starts: NDArray[np.int64],
    flat: NDArray[np.int32],
) -> None:
    """Compress (tokens, templates) to a list of attributes per token, without those under the cutoff."""
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
class TokenAttributes:
    """The attributes of each token. Token t has `rows[starts[t]:starts[t+1]]`."""

    starts: NDArray[np.int64]  # (tokens + 1,)
    rows: NDArray[np.int32]


def _attributes(starts: NDArray[np.int64], flat: NDArray[np.int32]) -> TokenAttributes:
    used = flat if starts[-1] == len(flat) else flat[: starts[-1]].copy()
    return TokenAttributes(readonly(starts, np.int64), readonly(used, np.int32))


@dataclass(frozen=True)
class FeatureIndex:
    """Attributes numbered by frequency, so that frequent rows share cache lines. Ties are in order of occurrence."""

    slots: Slots
    table: Table
    keys: NDArray[np.uint64]  # (attributes,)
    counts: NDArray[np.int64]  # (attributes,)
    #: The first occurrence of each attribute, as token * templates + template. Its values are read from there.
    seen_at: NDArray[np.int64]

    @property
    def size(self) -> int:
        return len(self.keys)

    def look_up(self, codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> TokenAttributes:
        """Find the attributes of another corpus that is coded with the same vocabularies."""
        tokens, templates = int(offsets[-1]), len(self.slots.seeds)
        starts, flat = np.zeros(tokens + 1, np.int64), np.empty(tokens * templates, np.int32)
        _looked_up(self.slots, codes, offsets, self.table.keys, self.table.rows, starts, flat)
        return _attributes(starts, flat)


def build(
    slots: Slots, codes: NDArray[np.int32], offsets: NDArray[np.int64], cutoff: int
) -> tuple[FeatureIndex, TokenAttributes]:
    """Number the features that occur at least `cutoff` times in a corpus, and return the attributes of each token."""
    tokens, templates = int(offsets[-1]), len(slots.seeds)
    longest = int(np.max(np.diff(offsets), initial=0))
    text = _Text(
        codes,
        offsets,
        np.empty(longest * templates, np.uint64),
        np.empty((tokens, templates), np.int32),
    )
    table = _empty_table(capacity_for(max(tokens, longest * templates)))
    sentence, size = 0, 0
    while True:
        sentence, size = _collect(slots, text, table, sentence, size)
        if sentence == len(offsets) - 1:
            break
        table = _grown(table)
    keys = np.zeros(size, np.uint64)
    filled = table.keys != 0
    keys[table.rows[filled]] = table.keys[filled]
    return _by_frequency(slots, keys, table.counts[:size], table.seen_at[:size], cutoff, text.attributes)


def _empty_table(capacity: int) -> _Growing:
    keys, rows = empty_cells(capacity)
    return _Growing(keys, rows, np.zeros(capacity // 2, np.int64), np.zeros(capacity // 2, np.int64))


def _grown(table: _Growing) -> _Growing:
    """A table with the same features and twice the cells."""
    grown = _empty_table(2 * len(table.keys))
    _rehash(table.keys, table.rows, grown.keys, grown.rows)
    grown.counts[: len(table.counts)] = table.counts
    grown.seen_at[: len(table.seen_at)] = table.seen_at
    return grown


def _by_frequency(
    slots: Slots,
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    seen_at: NDArray[np.int64],
    cutoff: int,
    attributes: NDArray[np.int32],
) -> tuple[FeatureIndex, TokenAttributes]:
    """Renumber the features by frequency, and drop those under the cutoff."""
    order = np.argsort(-counts, kind="stable")
    order = order[: int(np.searchsorted(-counts[order], -cutoff, side="right"))]
    new_row = np.full(len(counts), -1, np.int32)
    new_row[order] = np.arange(len(order), dtype=np.int32)
    starts, flat = np.zeros(len(attributes) + 1, np.int64), np.empty(attributes.size, np.int32)
    _renumbered(attributes, new_row, starts, flat)
    index = FeatureIndex(slots, Table.of(keys[order]), keys[order], counts[order], seen_at[order])
    return index, _attributes(starts, flat)
