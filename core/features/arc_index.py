"""The index of features over arcs: those that occur at gold arcs, numbered by frequency."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.base.hash_table import Table, capacity_for, empty_cells, find, insert
from tagsmith.core.base.jit import inlined, kernel, readonly
from tagsmith.core.features.arcs import (
    ArcScratch,
    ArcSlots,
    Keys,
    arc_key,
    arc_of,
    arc_scratch,
    codes_between,
    find_rows,
    hash_heads,
    hash_modifier,
    most_rows,
)
from tagsmith.core.features.columns.codes import UNKNOWN
from tagsmith.core.features.index import TokenAttributes, finished, mixed

#: Rows that a look-up collects before they are copied: 16 MB.
_BLOCK = 1 << 22


class _Growing(NamedTuple):
    """A hash table of the features seen so far. The caller replaces it when it is half full."""

    keys: Keys  # (cells,)
    rows: Ids  # (cells,)
    counts: Places  # (cells / 2,)
    seen_at: Places  # (cells / 2,) the first occurrence, as arc * templates + template
    between_at: Ids  # (cells / 2,) the code between of the first occurrence; UNKNOWN if the template has none


@kernel
def _collect(
    slots: ArcSlots, codes: Ids, offsets: Places, heads: Ids, table: _Growing, at: Places, size: int,
    s: ArcScratch,
) -> int:  # fmt: skip
    """Number the features of the gold arcs from `at` on, until the table may be more than half full.

    `at` is the next sentence, its next modifier, and the arcs before it. `size` features have numbers already. Returns
    the new size.
    """
    templates = slots.seeds.shape[0]
    while at[0] < offsets.shape[0] - 1:
        begin, end = offsets[at[0]], offsets[at[0] + 1]
        most = most_rows(slots, end - begin)
        hash_heads(slots, codes, begin, end, s)
        while at[1] <= end - begin:
            if 2 * (size + most) > table.keys.shape[0]:
                return size
            m = at[1]
            hash_modifier(slots, codes, begin, end, m, s)
            h = heads[begin + m - 1]
            for t in range(templates):
                key = arc_key(slots, t, h, m, s)
                if not key:
                    continue
                place = (at[2] + arc_of(h, m, end - begin)) * templates + t
                if slots.between[t] < 0:
                    size = _count(table, finished(key), place, UNKNOWN, size)
                    continue
                for k in range(codes_between(codes, slots.between[t], begin, h, m, s.between)):
                    code = s.between[k]
                    size = _count(table, finished(mixed(key, code)), place, code, size)
            at[1] += 1
        at[0], at[1], at[2] = at[0] + 1, 1, at[2] + (end - begin) ** 2
    return size


@inlined
def _count(table: _Growing, key: np.uint64, place: int, between: int, size: int) -> int:
    """Count a feature, as a new one if it was not seen before. Return the number of features."""
    mask = np.uint64(table.keys.shape[0] - 1)
    cell = key & mask
    while table.keys[cell] != np.uint64(0) and table.keys[cell] != key:
        cell = (cell + np.uint64(1)) & mask
    if table.keys[cell] == np.uint64(0):
        table.keys[cell] = key
        table.rows[cell] = size
        table.counts[size], table.seen_at[size], table.between_at[size] = 0, place, between
        size += 1
    table.counts[table.rows[cell]] += 1
    return size


@kernel
def _rehash(keys: Keys, rows: Ids, new_keys: Keys, new_rows: Ids) -> None:
    for cell in range(keys.shape[0]):
        if keys[cell] != np.uint64(0):
            insert(new_keys, new_rows, keys[cell], rows[cell])


class _Block(NamedTuple):
    """Where a look-up writes. The caller empties `rows` when the next modifier may not fit."""

    starts: Places  # (arcs + 1,) where the rows of each arc begin, within its block
    rows: Ids
    at: Places  # (3,) the next sentence, its next modifier, and the arcs before it


@kernel
def _look_up(
    slots: ArcSlots, cells: Keys, numbers: Ids, codes: Ids, offsets: Places, s: ArcScratch, block: _Block
) -> int:
    """Write the rows of all arcs from `block.at` on, until the block is full; return their number."""
    at, count = block.at, 0
    while at[0] < offsets.shape[0] - 1:
        begin, end = offsets[at[0]], offsets[at[0] + 1]
        n = end - begin
        hash_heads(slots, codes, begin, end, s)
        while at[1] <= n:
            m = at[1]
            if count + n * most_rows(slots, n) > block.rows.shape[0]:
                return count
            find_rows(slots, cells, numbers, codes, begin, end, m, s)
            for h in range(n + 1):
                if h != m:
                    block.starts[at[2] + arc_of(h, m, n)] = count + s.starts[h]
            for k in range(s.starts[n + 1]):
                block.rows[count + k] = s.rows[k]
            count += s.starts[n + 1]
            at[1] += 1
        at[0], at[1], at[2] = at[0] + 1, 1, at[2] + n * n
    return count


class _GoldRows(NamedTuple):
    """Where the look-up of gold arcs writes."""

    starts: Places  # (tokens + 1,)
    rows: Ids


@dataclass(frozen=True, eq=False)
class ArcIndex:
    """The features of gold arcs, numbered by frequency."""

    slots: ArcSlots
    table: Table
    keys: Keys  # (attributes,)
    counts: Places  # (attributes,)
    seen_at: Places  # (attributes,) the first occurrence, as arc * templates + template
    between_at: Ids  # (attributes,) its code between; UNKNOWN if its template has none

    @property
    def size(self) -> int:
        return len(self.keys)

    def look_up(self, codes: Ids, offsets: Places) -> TokenAttributes:
        """Find the attributes of all arcs of a corpus."""
        lengths = np.diff(offsets)
        s = arc_scratch(self.slots, int(lengths.max(initial=0)))
        arcs = int((lengths * lengths).sum())
        block = _Block(
            np.zeros(arcs + 1, np.int64),
            np.empty(max(_BLOCK, s.rows.size), np.int32),
            np.array([0, 1, 0], np.int64),
        )
        pieces, total, cells, numbers = list[Ids](), 0, self.table.keys, self.table.rows
        while block.at[0] < lengths.size:
            first = _arc_at(block.at, lengths)
            count = _look_up(self.slots, cells, numbers, codes, offsets, s, block)
            block.starts[first : _arc_at(block.at, lengths)] += total
            pieces.append(block.rows[:count].copy())
            total += count
        block.starts[-1] = total
        flat = np.concatenate([np.empty(0, np.int32), *pieces])
        return TokenAttributes(readonly(block.starts, np.int64), readonly(flat, np.int32))

    def look_up_gold(self, codes: Ids, offsets: Places, heads: Ids) -> TokenAttributes:
        """Find the attributes of the arc into each token of a corpus with these heads."""
        s = arc_scratch(self.slots, int(np.diff(offsets).max(initial=0)))
        out, table = _GoldRows(np.zeros(int(offsets[-1]) + 1, np.int64), np.empty(0, np.int32)), self.table
        _look_up_gold(self.slots, table.keys, table.rows, codes, offsets, heads, s, out)
        out = out._replace(rows=np.empty(out.starts[-1], np.int32))
        _look_up_gold(self.slots, table.keys, table.rows, codes, offsets, heads, s, out)
        return TokenAttributes(readonly(out.starts, np.int64), readonly(out.rows, np.int32))


@kernel
def _look_up_gold(
    slots: ArcSlots, cells: Keys, numbers: Ids, codes: Ids, offsets: Places, heads: Ids, s: ArcScratch,
    out: _GoldRows,
) -> None:  # fmt: skip
    """Write the rows of the gold arc into each token; only where they begin if `rows` has no room."""
    count, fill = 0, out.rows.shape[0] > 0
    for sentence in range(offsets.shape[0] - 1):
        begin, end = offsets[sentence], offsets[sentence + 1]
        hash_heads(slots, codes, begin, end, s)
        for token in range(begin, end):
            h, m = heads[token], token - begin + 1
            hash_modifier(slots, codes, begin, end, m, s)
            out.starts[token] = count
            for t in range(slots.seeds.shape[0]):
                key = arc_key(slots, t, h, m, s)
                if not key:
                    continue
                found = 1
                if slots.between[t] >= 0:
                    found = codes_between(codes, slots.between[t], begin, h, m, s.between)
                for k in range(found):
                    of_value = mixed(key, s.between[k]) if slots.between[t] >= 0 else key
                    row = find(cells, numbers, finished(of_value))
                    if row >= 0:
                        if fill:
                            out.rows[count] = row
                        count += 1
    out.starts[offsets[offsets.shape[0] - 1]] = count


def _arc_at(at: Places, lengths: Places) -> int:
    """Return the number of the first arc that a look-up has not reached."""
    sentence, modifier, before = at.tolist()
    return int(before if sentence == lengths.size else before + (modifier - 1) * lengths[sentence])


def build_arcs(slots: ArcSlots, codes: Ids, offsets: Places, heads: Ids, cutoff: int) -> ArcIndex:
    """Number the features that occur at least `cutoff` times at gold arcs."""
    longest = int(np.max(np.diff(offsets), initial=0))
    table = _empty(capacity_for(max(int(offsets[-1]), most_rows(slots, longest))))
    s, size, at = arc_scratch(slots, longest), 0, np.array([0, 1, 0], np.int64)
    while True:
        size = _collect(slots, codes, offsets, readonly(heads, np.int32), table, at, size, s)
        if at[0] == len(offsets) - 1:
            break
        table = _grown(table)
    keys, filled = np.zeros(size, np.uint64), table.keys != 0
    keys[table.rows[filled]] = table.keys[filled]
    counts = table.counts[:size]
    order = np.argsort(-counts, kind="stable")
    order = order[: int(np.searchsorted(-counts[order], -cutoff, side="right"))]
    return ArcIndex(
        slots,
        Table.of(keys[order]),
        keys[order],
        counts[order],
        table.seen_at[order],
        table.between_at[order],
    )


def _empty(capacity: int) -> _Growing:
    keys, rows = empty_cells(capacity)
    half = capacity // 2
    return _Growing(keys, rows, np.zeros(half, np.int64), np.zeros(half, np.int64), np.zeros(half, np.int32))


def _grown(table: _Growing) -> _Growing:
    """A table with the same features and twice the cells."""
    grown = _empty(2 * len(table.keys))
    _rehash(table.keys, table.rows, grown.keys, grown.rows)
    used = len(table.counts)
    grown.counts[:used], grown.seen_at[:used] = table.counts, table.seen_at
    grown.between_at[:used] = table.between_at
    return grown
