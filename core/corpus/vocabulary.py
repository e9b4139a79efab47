"""Map strings to ids and back, with three plain arrays.

Model files store the same arrays, so the vocabulary of an open model is a view of the mapped file: nothing is built
when a model is opened, and there is no Python object per entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from tagsmith.core.base.arrays import Bytes, Ids, Places
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.hashing import GOLDEN
from tagsmith.core.base.jit import inner, kernel, readonly

#: Eight bytes at a time form a little-endian word, which is mixed in by a multiplication with an odd constant. A
#: finisher like that of MurmurHash follows, because the table uses only the low bits.
_FOLD = np.uint64(0x9FB21C651E98DF25)
_FINISH = np.uint64(0xD6E8FEB86659FD93)
_S32 = np.uint64(32)
_S8 = np.uint64(8)


@kernel
def hash_bytes(buffer: Bytes, start: int, stop: int) -> np.uint64:
    """Return the 64-bit hash of `buffer[start:stop]`. It is the same on every machine and in every release."""
    h = GOLDEN ^ (np.uint64(stop - start) * _FINISH)
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


#: The hash function is public, so an attacker can construct strings with the same slot, which take quadratic time to
#: insert. In a half-full table a search takes half a step on average. A vocabulary that needs more than these steps per
#: string, plus an allowance for small tables, is rejected.
STEPS_EACH = 16
STEPS_AT_ONCE = 1 << 20

_FLOODED = -2


@kernel
def _build_table(text: Bytes, offsets: Places, table: Ids) -> int:
    """Fill an empty table with ids 0..n-1. Returns -1, the first id with a duplicate string, or `_FLOODED`."""
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
    """Copy spans to `text`: the one that begins at buffer[starts[k]] becomes text[offsets[k]:offsets[k + 1]]."""
    for k in range(starts.size):
        shift = starts[k] - offsets[k]
        for i in range(offsets[k], offsets[k + 1]):
            text[i] = buffer[i + shift]


@kernel
def _split_lines(buffer: Bytes, starts: Places, stops: Places) -> bool:
    """Find the bounds of the lines of `buffer`. Returns False if their number is not `starts.size`."""
    newlines = 0
    for i in range(buffer.size):
        newlines += buffer[i] == 10
    if newlines != starts.size - 1:
        return False
    # Without a branch on the byte: a branch predictor cannot learn where words end.
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
    """Look up the lines of `buffer`. Returns False if their number is not `ids.size`."""
    if not _split_lines(buffer, starts, stops):
        return False
    _lookup(text, offsets, table, buffer, starts, stops, ids)
    return True


def pack(tokens: Sequence[str]) -> tuple[Bytes, Places, Places]:
    """Return (buffer, starts, stops): the UTF-8 of all tokens in one buffer, and the bounds of each.

    Lone surrogates, which JSON can contain, are encoded as three bytes: they are unknown words, not errors.
    """
    starts = np.empty(len(tokens), np.int64)
    stops = np.empty(len(tokens), np.int64)
    buffer = np.frombuffer("\n".join(tokens).encode("utf-8", "surrogatepass"), np.uint8)
    if tokens and not _split_lines(buffer, starts, stops):
        return _pack_each(tokens)
    return buffer, starts, stops


def _pack_each(tokens: Sequence[str]) -> tuple[Bytes, Places, Places]:
    """As `pack`, for tokens that contain newlines."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    stops = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    starts = np.concatenate((np.zeros(1, np.int64), stops[:-1]))
    return np.frombuffer(b"".join(encoded), np.uint8), starts, stops


def table_capacity(entries: int) -> int:
    """Return the size of a table for `entries`: a power of two, at least 8, so that it is at most half full."""
    return max(8, 1 << (2 * entries - 1).bit_length()) if entries else 8


def check_spans(buffer: Bytes, starts: Places, stops: Places) -> None:
    """Check that spans lie within the buffer, because kernels do not check bounds."""
    if starts.ndim != 1 or starts.shape != stops.shape or buffer.ndim != 1:
        raise ValueError("starts and stops must be arrays of one dimension and of the same length")
    if starts.size and (starts.min() < 0 or stops.max() > buffer.size or (stops < starts).any()):
        raise ValueError("a span lies outside the buffer")


def hash_flood(place: str) -> Invalid:
    """Return the error for strings that were constructed to collide; `place` is a prefix of the reason."""
    return Invalid(
        "Too many values have colliding hashes, which does not happen by chance. Remove them.",
        [Fault(f"{place}one of very many values with colliding hashes")],
        code="hash_flood",
    )


@dataclass(frozen=True, eq=False, slots=True)
class Vocabulary:
    """Distinct strings with ids from 0."""

    text: Bytes  # UTF-8 of all strings, concatenated
    offsets: Places  # (n + 1,): string i is text[offsets[i]:offsets[i + 1]]
    table: Ids  # (capacity,): open addressing on `hash_bytes`, -1 means empty

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", readonly(self.text, np.uint8))
        object.__setattr__(self, "offsets", readonly(self.offsets, np.int64))
        object.__setattr__(self, "table", readonly(self.table, np.int32))
        self._check()

    def _check(self) -> None:
        """Check the arrays: they may come from a damaged file, and the kernels do not check them."""
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
            raise Invalid(
                "The arrays of the vocabulary contradict each other. Create the file again.",
                code="corrupt_vocabulary",
            )

    @classmethod
    def from_spans(cls, buffer: Bytes, starts: Places, stops: Places) -> Self:
        """Return the vocabulary of `buffer[starts[k]:stops[k]]`, which must be distinct; k is the id."""
        buffer, starts = readonly(buffer, np.uint8), readonly(starts, np.int64)
        stops = readonly(stops, np.int64)
        check_spans(buffer, starts, stops)
        offsets = np.zeros(starts.size + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        text = np.empty(offsets[-1], np.uint8)
        _gather(buffer, starts, readonly(offsets, np.int64), text)
        table = np.full(table_capacity(starts.size), -1, np.int32)
        duplicate = _build_table(readonly(text, np.uint8), readonly(offsets, np.int64), table)
        if duplicate == _FLOODED:
            raise hash_flood("")
        if duplicate >= 0:
            raise ValueError(f"string {duplicate} occurs twice")
        return cls(text, offsets, table)

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> Self:
        """Return the vocabulary of distinct `strings`; ids are their indices."""
        return cls.from_spans(*pack(strings))

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, entry: int) -> str:
        if not 0 <= entry < len(self):
            raise IndexError(entry)
        start, stop = self.offsets[entry : entry + 2]
        return self.text[start:stop].tobytes().decode("utf-8", "surrogatepass")

    def strings(self) -> list[str]:
        """Return all strings in the order of their ids."""
        raw = self.text.tobytes()
        bounds = self.offsets.tolist()
        if raw.isascii():
            whole = raw.decode("ascii")
            return [whole[a:b] for a, b in pairwise(bounds)]
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]

    def id_of(self, string: str) -> int:
        """Return the id of `string`, or -1."""
        encoded = np.frombuffer(string.encode("utf-8", "surrogatepass"), np.uint8)
        return int(self.lookup(encoded, np.zeros(1, np.int64), np.full(1, encoded.size, np.int64))[0])

    def lookup_strings(self, strings: Sequence[str], ids: Ids) -> None:
        """Write the id of each string to `ids`; -1 for unknown strings.

        One call of one kernel, without checks: the spans are created here. For a request of one sentence, these
        look-ups are most of the time of tagging.
        """
        if len(strings) != ids.size:
            raise ValueError("`ids` must have one element per string")
        if not strings:
            return
        buffer = np.frombuffer("\n".join(strings).encode("utf-8", "surrogatepass"), np.uint8)
        starts, stops = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64)
        if not _lookup_lines(self.text, self.offsets, self.table, buffer, starts, stops, ids):
            ids[:] = self.lookup(*_pack_each(strings))

    def lookup(self, buffer: Bytes, starts: Places, stops: Places) -> Ids:
        """Return the id of each `buffer[starts[k]:stops[k]]`, -1 for unknown strings."""
        buffer, starts = readonly(buffer, np.uint8), readonly(starts, np.int64)
        stops = readonly(stops, np.int64)
        check_spans(buffer, starts, stops)
        ids = np.empty(starts.size, np.int32)
        _lookup(self.text, self.offsets, self.table, buffer, starts, stops, ids)
        return ids


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    known = Vocabulary.from_strings(["a", "b"])
    known.lookup(*pack(["a", "\n"]))
    known.lookup_strings(["a", "b"], np.empty(2, np.int32))
