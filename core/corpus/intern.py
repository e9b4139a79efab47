"""Number strings as they are first met, for all columns of a corpus at once.

One pool serves every column (the column is part of the key), so a kernel is compiled once and not once per
number of columns, and memory follows the distinct strings, not the columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Bytes, Ids, Places
from core.corpus.vocabulary import (
    STEPS_AT_ONCE,
    STEPS_EACH,
    Vocabulary,
    check_spans,
    flooded,
    hash_bytes,
    same_bytes,
    table_capacity,
)
from core.jit import Scalar, kernel, readonly

#: Odd, so that different columns give different hashes to the same string.
_COLUMN_STEP = np.uint64(0x9E3779B97F4A7C15)


class Pool(NamedTuple):
    """Entries (column, string) in order of first sight; the arrays have room to spare."""

    text: Bytes
    offsets: Places  # entry e is text[offsets[e]:offsets[e + 1]]
    hashes: NDArray[np.uint64]
    columns: Ids
    ids: Ids  # the entry's number within its column
    table: Ids  # open addressing, -1 empty, at most half full
    counts: Places  # distinct strings so far, by column
    used: (
        Places  # (3,): how many entries there are, strings looked up, and steps walked in the table for them
    )


@kernel
def _intern(pool: Pool, buffer: Bytes, starts: Places, stops: Places, width: int, out: Ids) -> int:
    """out[k] = number of buffer[starts[k]:stops[k]] in column k % width, new if need be; room is reserved.

    Returns -1, or the first k that was given up because of too many steps so far.
    """
    # Taken apart once: arrays fetched from a tuple in the loop cost an atomic reference count each time.
    text, offsets, hashes, columns, ids, table, counts, used = pool
    mask = table.size - 1
    entries = used[0]
    steps = STEPS_AT_ONCE + STEPS_EACH * used[1] - used[2]  # that may yet be walked
    column = 0
    for k in range(starts.size):
        start = starts[k]
        length = stops[k] - start
        h = hash_bytes(buffer, start, start + length) ^ (np.uint64(column) * _COLUMN_STEP)
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
    """Enter entries 0..entries-1, known to be distinct, into an empty table."""
    mask = np.uint64(table.size - 1)
    for entry in range(entries):
        slot = np.int64(hashes[entry] & mask)
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = entry


def empty_pool(columns: int) -> Pool:
    """A pool without entries for up to `columns` columns."""
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
    """A pool with the same entries and room for that many more; arrays at least double when they grow."""
    used = int(pool.used[0])
    need = used + entries
    if need > pool.hashes.size:
        room = max(need, 2 * pool.hashes.size)
        pool = pool._replace(
            offsets=_grown(pool.offsets, used + 1, room + 1),
            hashes=_grown(pool.hashes, used, room),
            columns=_grown(pool.columns, used, room),
            ids=_grown(pool.ids, used, room),
        )
    filled = int(pool.offsets[used])
    if filled + text_bytes > pool.text.size:
        room = max(filled + text_bytes, 2 * pool.text.size)
        pool = pool._replace(text=_grown(pool.text, filled, room))
    if 2 * need > pool.table.size:
        table = np.full(table_capacity(need), -1, np.int32)
        _rehash(pool.hashes, used, table)
        pool = pool._replace(table=table)
    return pool


def intern(pool: Pool, buffer: Bytes, starts: Places, stops: Places, width: int) -> tuple[Pool, Ids]:
    """Number rows of `width` strings, given as spans of `buffer` row by row; (the pool, grown; the ids)."""
    check_spans(buffer, starts, stops)
    if not 0 < width <= pool.counts.size or starts.size % width:
        raise ValueError("the spans are not rows of that width")
    pool = _reserve(pool, starts.size, int((stops - starts).sum()))
    out = np.empty(starts.size, np.int32)
    given_up = _intern(
        pool, readonly(buffer, np.uint8), readonly(starts, np.int64), readonly(stops, np.int64), width, out
    )
    if given_up >= 0:
        row, column = divmod(int(pool.used[1]) + given_up, width)
        raise flooded(f"token {row + 1}, column {column}: ")
    return pool, out


def _grown(array: NDArray[Scalar], filled: int, room: int) -> NDArray[Scalar]:
    larger = np.empty(room, array.dtype)
    larger[:filled] = array[:filled]
    return larger


def vocabulary_of(pool: Pool, column: int) -> Vocabulary:
    """The strings of one column; ids are those `intern` gave out."""
    used = int(pool.used[0])
    entries = np.flatnonzero(pool.columns[:used] == column)
    return Vocabulary.from_spans(pool.text, pool.offsets[entries], pool.offsets[entries + 1])
