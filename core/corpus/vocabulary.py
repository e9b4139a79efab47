"""Strings to ids and back, in three plain arrays.

The arrays are what the model file stores, so a served vocabulary is a view of the mapped file: nothing is
built when a model is opened, and no Python object exists per entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from core.corpus.arrays import Bytes, Ids, Places
from core.errors import Fault, Invalid
from core.jit import inner, kernel, readonly

#: Bytes are gathered eight at a time into little-endian words, each folded in by a multiplication with an odd
#: constant; the end is a murmur-like finisher, because the table uses the low bits only.
_SEED = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(0x9FB21C651E98DF25)
_FINISH = np.uint64(0xD6E8FEB86659FD93)
_S32 = np.uint64(32)
_S8 = np.uint64(8)


@kernel
def hash_bytes(buffer: Bytes, start: int, stop: int) -> np.uint64:
    """64-bit hash of `buffer[start:stop]`; the same on every machine and in every release."""
    h = _SEED ^ (np.uint64(stop - start) * _FINISH)
    i = start
    while i + 8 <= stop:
        word = (
            np.uint64(buffer[i])
            | np.uint64(buffer[i + 1]) << np.uint64(8)
            | np.uint64(buffer[i + 2]) << np.uint64(16)
            | np.uint64(buffer[i + 3]) << np.uint64(24)
            | np.uint64(buffer[i + 4]) << np.uint64(32)
            | np.uint64(buffer[i + 5]) << np.uint64(40)
            | np.uint64(buffer[i + 6]) << np.uint64(48)
            | np.uint64(buffer[i + 7]) << np.uint64(56)
        )
        h = (h ^ word) * _FOLD
        h ^= h >> _S32
        i += 8
    word = np.uint64(0)
    shift = np.uint64(0)
    while i < stop:
        word |= np.uint64(buffer[i]) << shift
        shift += _S8
        i += 1
    h = (h ^ word) * _FOLD
    h ^= h >> _S32
    h *= _FINISH
    return h ^ (h >> _S32)


@inner
def same_bytes(a: Bytes, a_start: int, b: Bytes, b_start: int, length: int) -> bool:
    """Whether two runs of `length` bytes are equal."""
    i = 0
    while i < length and a[a_start + i] == b[b_start + i]:
        i += 1
    return i == length


#: The hash is known to all, so strings can be made that all want the same slot, and each of n would walk past those
#: before it. In a table half full a walk is half a step on average; beyond these steps a string, and some at once for
#: the luck of small tables, a vocabulary is refused rather than built in the square of its size.
STEPS_EACH = 16
STEPS_AT_ONCE = 1 << 20

_FLOODED = -2


@kernel
def _build_table(text: Bytes, offsets: Places, table: Ids) -> int:
    """Fill an empty table with ids 0..n-1; returns the first id whose string came before, -1, or `_FLOODED`."""
    steps = STEPS_AT_ONCE + STEPS_EACH * offsets.size
    mask = np.uint64(table.size - 1)
    for entry in range(offsets.size - 1):
        start = offsets[entry]
        length = offsets[entry + 1] - start
        slot = np.int64(hash_bytes(text, start, start + length) & mask)
        while table[slot] >= 0:
            other = table[slot]
            if offsets[other + 1] - offsets[other] == length and same_bytes(
                text, offsets[other], text, start, length
            ):
                return entry
            slot = (slot + 1) & (table.size - 1)
            steps -= 1
            if steps < 0:
                return _FLOODED
        table[slot] = entry
    return -1


@kernel
def _lookup(
    text: Bytes, offsets: Places, table: Ids, buffer: Bytes, starts: Places, stops: Places, ids: Ids
) -> None:
    """ids[k] = id of buffer[starts[k]:stops[k]], or -1. Linear probing; the table is never full."""
    mask = np.uint64(table.size - 1)
    for k in range(starts.size):
        start = starts[k]
        length = stops[k] - start
        slot = np.int64(hash_bytes(buffer, start, start + length) & mask)
        found = table[slot]
        while found >= 0:
            begin = offsets[found]
            if offsets[found + 1] - begin == length and same_bytes(text, begin, buffer, start, length):
                break
            slot = (slot + 1) & (table.size - 1)
            found = table[slot]
        ids[k] = found


@kernel
def _gather(buffer: Bytes, starts: Places, offsets: Places, text: Bytes) -> None:
    """Copy the runs that begin at `starts` one after the other into `text`; `offsets` has their lengths."""
    for k in range(starts.size):
        shift = starts[k] - offsets[k]
        for i in range(offsets[k], offsets[k + 1]):
            text[i] = buffer[i + shift]


@kernel
def _split_lines(buffer: Bytes, starts: Places, stops: Places) -> bool:
    """Bounds of the lines of `buffer`; False, with nothing written, when they are not as many as `starts`."""
    newlines = 0
    for i in range(buffer.size):
        newlines += buffer[i] == 10
    if newlines != starts.size - 1:
        return False
    # Without a branch on the byte: where words end is what a branch predictor cannot learn.
    line = 0
    for i in range(buffer.size):
        stops[line] = i
        line += buffer[i] == 10
    stops[line] = buffer.size
    starts[0] = 0
    for k in range(1, starts.size):
        starts[k] = stops[k - 1] + 1
    return True


@kernel
def _lookup_lines(
    text: Bytes, offsets: Places, table: Ids, buffer: Bytes, starts: Places, stops: Places, ids: Ids
) -> bool:
    """ids of the lines of `buffer`; False, with nothing written, when they are not as many as `ids`."""
    if not _split_lines(buffer, starts, stops):
        return False
    _lookup(text, offsets, table, buffer, starts, stops, ids)
    return True


def pack(tokens: Sequence[str]) -> tuple[Bytes, Places, Places]:
    """The UTF-8 of all tokens in one buffer, with where each starts and stops.

    Lone surrogates, which JSON can carry, are kept as three bytes each: they are unknown words, not errors.
    """
    starts = np.empty(len(tokens), np.int64)
    stops = np.empty(len(tokens), np.int64)
    buffer = np.frombuffer("\n".join(tokens).encode("utf-8", "surrogatepass"), np.uint8)
    if tokens and not _split_lines(buffer, starts, stops):
        return _pack_each(tokens)
    return buffer, starts, stops


def _pack_each(tokens: Sequence[str]) -> tuple[Bytes, Places, Places]:
    """As `pack`, for tokens that hold newlines themselves."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    stops = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    starts = np.concatenate((np.zeros(1, np.int64), stops[:-1]))
    return np.frombuffer(b"".join(encoded), np.uint8), starts, stops


def table_capacity(entries: int) -> int:
    """Slots for `entries`: a power of two, at most half full, at least 8."""
    return max(8, 1 << (2 * entries - 1).bit_length()) if entries else 8


def check_spans(buffer: Bytes, starts: Places, stops: Places) -> None:
    """Kernels check no bounds: one wrong offset here would read foreign memory."""
    if starts.ndim != 1 or starts.shape != stops.shape or buffer.ndim != 1:
        raise ValueError("starts and stops must be arrays of one dimension and of the same length")
    if starts.size and (starts.min() < 0 or stops.max() > buffer.size or (stops < starts).any()):
        raise ValueError("a span lies outside the buffer")


def flooded(where: str) -> Invalid:
    """The error for strings that were made to collide."""
    return Invalid(
        "The values cannot be numbered: too many have colliding hashes, which does not happen by chance.",
        [Fault(f"{where}one of very many values with colliding hashes")],
        code="hash_flood",
    )


@dataclass(frozen=True, eq=False, slots=True)
class Vocabulary:
    """Distinct strings numbered from 0."""

    text: Bytes  # UTF-8 of all strings, concatenated
    offsets: Places  # (n + 1,): string i is text[offsets[i]:offsets[i + 1]]
    table: Ids  # (capacity,): open addressing on `hash_bytes`, -1 where empty

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", readonly(self.text, np.uint8))
        object.__setattr__(self, "offsets", readonly(self.offsets, np.int64))
        object.__setattr__(self, "table", readonly(self.table, np.int32))
        self._check()

    def _check(self) -> None:
        """Arrays may come from a damaged file; the kernels that read them check nothing."""
        text, offsets, table = self.text, self.offsets, self.table
        sound = (
            text.ndim == offsets.ndim == table.ndim == 1
            and offsets.size >= 1
            and offsets[0] == 0
            and offsets[-1] == text.size
            and bool((offsets[1:] >= offsets[:-1]).all())
            and table.size >= 2
            and table.size & (table.size - 1) == 0
            and bool((table >= -1).all())
            and bool((table < offsets.size - 1).all())
            and np.count_nonzero(table >= 0) == offsets.size - 1
            and 2 * (offsets.size - 1) <= table.size
        )
        if not sound:
            raise Invalid("The vocabulary's arrays contradict each other.", code="corrupt_vocabulary")

    @classmethod
    def from_spans(cls, buffer: Bytes, starts: Places, stops: Places) -> Self:
        """The vocabulary of `buffer[starts[k]:stops[k]]`, which must be distinct; k is the id."""
        buffer, starts = readonly(buffer, np.uint8), readonly(starts, np.int64)
        stops = readonly(stops, np.int64)
        check_spans(buffer, starts, stops)
        offsets = np.zeros(starts.size + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        text = np.empty(offsets[-1], np.uint8)
        _gather(buffer, starts, readonly(offsets, np.int64), text)
        table = np.full(table_capacity(starts.size), -1, np.int32)
        twice = _build_table(readonly(text, np.uint8), readonly(offsets, np.int64), table)
        if twice == _FLOODED:
            raise flooded("")
        if twice >= 0:
            raise ValueError(f"string {twice} occurs twice")
        return cls(text, offsets, table)

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> Self:
        """The vocabulary of distinct `strings`; ids are their places in the list."""
        return cls.from_spans(*pack(strings))

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, entry: int) -> str:
        if not 0 <= entry < len(self):
            raise IndexError(entry)
        start, stop = self.offsets[entry : entry + 2]
        return self.text[start:stop].tobytes().decode("utf-8", "surrogatepass")

    def strings(self) -> list[str]:
        """All strings in the order of their ids."""
        raw = self.text.tobytes()
        bounds = self.offsets.tolist()
        if raw.isascii():
            whole = raw.decode("ascii")
            return [whole[a:b] for a, b in pairwise(bounds)]
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]

    def id_of(self, string: str) -> int:
        """The id of `string`, or -1."""
        encoded = np.frombuffer(string.encode("utf-8", "surrogatepass"), np.uint8)
        return int(self.lookup(encoded, np.zeros(1, np.int64), np.full(1, encoded.size, np.int64))[0])

    def lookup_strings(self, strings: Sequence[str], ids: Ids) -> None:
        """The id of each string into `ids`, a writable row of as many; -1 where it is unknown.

        One kernel and nothing to check: spans made here lie within their buffer. A request of one sentence is looked
        up column by column, and that is most of what it takes to tag it.
        """
        if len(strings) != ids.size:
            raise ValueError("one id is needed for each string")
        if not strings:
            return
        buffer = np.frombuffer("\n".join(strings).encode("utf-8", "surrogatepass"), np.uint8)
        starts, stops = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64)
        if not _lookup_lines(self.text, self.offsets, self.table, buffer, starts, stops, ids):
            ids[:] = self.lookup(*_pack_each(strings))

    def lookup(self, buffer: Bytes, starts: Places, stops: Places) -> Ids:
        """The id of each `buffer[starts[k]:stops[k]]`, -1 where it is unknown."""
        buffer, starts = readonly(buffer, np.uint8), readonly(starts, np.int64)
        stops = readonly(stops, np.int64)
        check_spans(buffer, starts, stops)
        ids = np.empty(starts.size, np.int32)
        _lookup(self.text, self.offsets, self.table, buffer, starts, stops, ids)
        return ids


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module in the one form it is used in."""
    known = Vocabulary.from_strings(["a", "b"])
    known.lookup(*pack(["a", "\n"]))
    known.lookup_strings(["a", "b"], np.empty(2, np.int32))
