"""Assign ids to strings in order of first occurrence, for all columns of a corpus at once.

All columns share one pool, with the column as part of the key. So the kernel does not depend on the number of columns,
and memory depends on the distinct strings, not on the columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Bytes, Ids, Places
from tagsmith.core.base.hashing import GOLDEN
from tagsmith.core.base.jit import Scalar, kernel, readonly
from tagsmith.core.corpus.vocabulary import (
    STEPS_AT_ONCE,
    STEPS_EACH,
    Vocabulary,
    check_spans,
    hash_bytes,
    hash_flood,
    same_bytes,
    table_capacity,
)


class Pool(NamedTuple):
    """Entries (column, string) in order of first occurrence. The arrays have spare capacity."""

    text: Bytes
    offsets: Places  # entry e is text[offsets[e]:offsets[e + 1]]
    hashes: NDArray[np.uint64]
    columns: Ids
    ids: Ids  # id of the entry within its column
    table: Ids  # open addressing; -1 means empty; at most half full
    counts: Places  # distinct strings per column
    used: Places  # (3,): number of entries, of strings looked up, and of steps in the table


@kernel
def _intern(pool: Pool, buffer: Bytes, starts: Places, stops: Places, width: int, out: Ids) -> int:
    """out[k] = id of buffer[starts[k]:stops[k]] in column k % width, a new id if the string is new.

    The caller reserves capacity. Returns -1, or the k at which the limit of steps was exceeded.
    """
    # Unpacked once, not in the loop.
    text, offsets, hashes, columns, ids, table, counts, used = pool
    mask = table.size - 1
    entries = used[0]
    steps = STEPS_AT_ONCE + STEPS_EACH * used[1] - used[2]  # steps left
    column = 0
    for k in range(starts.size):
        start = starts[k]
        length = stops[k] - start
        # GOLDEN is odd, so the same string has a different hash in each column.
        h = hash_bytes(buffer, start, start + length) ^ (np.uint64(column) * GOLDEN)
        slot = np.int64(h & np.uint64(mask))
        entry = table[slot]
        steps += STEPS_EACH
        while entry >= 0:
            begin = offsets[entry]
            if (
                hashes[entry] == h
                and columns[entry] == column
                and offsets[entry + 1] - begin == length
                and same_bytes(text, begin, buffer, start, length)
            ):
                break
            slot = (slot + 1) & mask
            entry = table[slot]
            steps -= 1
            if steps < 0:
                return k
        if entry < 0:
            begin = offsets[entries]
            for i in range(length):
                text[begin + i] = buffer[start + i]
            offsets[entries + 1] = begin + length
            hashes[entries] = h
            columns[entries] = column
            ids[entries] = counts[column]
            counts[column] += 1
            entry = table[slot] = entries
            entries += 1
        out[k] = ids[entry]
        column += 1
        if column == width:
            column = 0
    used[0] = entries
    used[1] += starts.size
    used[2] = STEPS_AT_ONCE + STEPS_EACH * used[1] - steps
    return -1


@kernel
def _rehash(hashes: NDArray[np.uint64], entries: int, table: Ids) -> None:
    """Insert the entries 0..entries-1, which are distinct, into an empty table."""
    mask = np.uint64(table.size - 1)
    for entry in range(entries):
        slot = np.int64(hashes[entry] & mask)
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = entry


def empty_pool(columns: int) -> Pool:
    """Return an empty pool for up to `columns` columns."""
    return Pool(
        np.empty(0, np.uint8),
        np.zeros(1, np.int64),
        np.empty(0, np.uint64),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.full(8, -1, np.int32),
        np.zeros(columns, np.int64),
        np.zeros(3, np.int64),
    )


def _reserve(pool: Pool, entries: int, text_bytes: int) -> Pool:
    """Return the pool with capacity for that many more entries and bytes. Arrays at least double when they grow."""
    used = int(pool.used[0])
    need = used + entries
    if need > pool.hashes.size:
        room = max(need, 2 * pool.hashes.size)
        pool = pool._replace(
            offsets=grown(pool.offsets, used + 1, room + 1),
            hashes=grown(pool.hashes, used, room),
            columns=grown(pool.columns, used, room),
            ids=grown(pool.ids, used, room),
        )
    filled = int(pool.offsets[used])
    if filled + text_bytes > pool.text.size:
        room = max(filled + text_bytes, 2 * pool.text.size)
        pool = pool._replace(text=grown(pool.text, filled, room))
    if 2 * need > pool.table.size:
        table = np.full(table_capacity(need), -1, np.int32)
        _rehash(pool.hashes, used, table)
        pool = pool._replace(table=table)
    return pool


def intern(pool: Pool, buffer: Bytes, starts: Places, stops: Places, width: int) -> tuple[Pool, Ids]:
    """Assign ids to rows of `width` strings, given as spans of `buffer`; return (the pool, the ids)."""
    check_spans(buffer, starts, stops)
    if not 0 < width <= pool.counts.size or starts.size % width:
        raise ValueError("the spans are not rows of that width")
    pool = _reserve(pool, starts.size, int((stops - starts).sum()))
    out = np.empty(starts.size, np.int32)
    failed = _intern(
        pool, readonly(buffer, np.uint8), readonly(starts, np.int64), readonly(stops, np.int64), width, out
    )
    if failed >= 0:
        row, column = divmod(int(pool.used[1]) + failed, width)
        raise hash_flood(f"token {row + 1}, column {column}: ")
    return pool, out


def grown(array: NDArray[Scalar], filled: int, room: int) -> NDArray[Scalar]:
    """Return an array of `room` elements, the first `filled` of them those of `array`."""
    larger = np.empty(room, array.dtype)
    larger[:filled] = array[:filled]
    return larger


def vocabulary_of(pool: Pool, column: int) -> Vocabulary:
    """Return the vocabulary of one column, with the ids that `intern` assigned."""
    used = int(pool.used[0])
    entries = np.flatnonzero(pool.columns[:used] == column)
    return Vocabulary.from_spans(pool.text, pool.offsets[entries], pool.offsets[entries + 1])
