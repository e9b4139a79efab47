"""The base class of readers of line-based text.

It receives bytes in chunks of any size, passes whole lines in batches to the kernel of the format, and reports faults
with their line numbers. Of an incomplete line it keeps at most `max_line_bytes`, so memory is bounded by the integer
columns and the distinct strings.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tagsmith.core.base.arrays import Bytes, Ids, Places
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.corpus.corpus import Corpus

#: A reader stops after this many faults: nobody corrects more at once.
MAX_FAULTS = 100

#: Approximate size of a batch of lines: large compared with the cost of a call, small compared with the L2 cache.
_BATCH_BYTES = 64 * 1024

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Indices of the state array; those of a format follow.
LINE = 0  # lines read
FAULTS = 1
TOKENS = 2  # tokens read
OWN_STATE = 3

# Kinds of faults; a fault is (line, kind, a, b). Those of a format follow.
LONG, CONTROL, ENCODING = range(3)
OWN_FAULTS = 3


@inner
def sequence_length(buffer: Bytes, i: int, stop: int) -> int:
    """Return the length of the well-formed UTF-8 character at `i`, 0 if there is none (Unicode standard, table 3-7)."""
    lead = buffer[i]
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    length = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    if i + length > stop:
        return 0
    for k in range(i + 1, i + length):
        if buffer[k] & 0xC0 != 0x80:
            return 0
    second = buffer[i + 1]
    overlong = (lead == 0xE0 and second < 0xA0) or (lead == 0xF0 and second < 0x90)
    not_a_character = (lead == 0xED and second > 0x9F) or (lead == 0xF4 and second > 0x8F)
    return 0 if overlong or not_a_character else length


@kernel
def _encoding_fault(buffer: Bytes, start: int, stop: int) -> int:
    """Return the index of the first byte that is not UTF-8, or -1."""
    i = start
    while i < stop:
        length = sequence_length(buffer, i, stop)
        if length == 0:
            return i
        i += length
    return -1


@kernel
def record(state: Places, faults: Places, kind: int, a: int, b: int) -> None:
    """Record a fault of the current line."""
    row = state[FAULTS]
    faults[row, 0] = state[LINE]
    faults[row, 1] = kind
    faults[row, 2] = a
    faults[row, 3] = b
    state[FAULTS] += 1


@inner
def byte_fault(buffer: Bytes, start: int, stop: int, state: Places, faults: Places) -> bool:
    """Check a line for control characters other than tab and for invalid UTF-8; record a fault if there is one."""
    for i in range(start, stop):
        if (buffer[i] < 32 and buffer[i] != 9) or buffer[i] == 127:
            record(state, faults, CONTROL, int(buffer[i]), i - start + 1)
            return True
    invalid = _encoding_fault(buffer, start, stop)
    if invalid >= 0:
        record(state, faults, ENCODING, int(buffer[invalid]), invalid - start + 1)
        return True
    return False


class LineReader(ABC):
    """Call `feed()` with chunks of bytes, then `finish()`. Raises `Invalid` with the faulty lines."""

    #: The reasons of the format's own faults; {0} and {1} are their two numbers.
    reasons: ClassVar[Mapping[int, str]] = {}

    def __init__(self, *, max_line_bytes: int, state_size: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._state = np.zeros(state_size, np.int64)
        self._faults = np.empty((MAX_FAULTS, 4), np.int64)
        self._pending = bytearray()  # bytes not yet scanned
        self._line_start = 0  # where the incomplete line begins in `pending`
        self._skipping = False  # inside a line that was reported as too long
        self._at_start = True
        self._blocks: list[list[Ids]] = []  # per column, the ids of each batch
        self._ends: list[Places] = []  # per batch, the number of tokens before the end of each sentence

    @abstractmethod
    def _scan(self, buffer: Bytes) -> None:
        """Read whole lines (the buffer ends with a newline); record faults, or keep ids and sentence ends."""

    @abstractmethod
    def _corpus(self) -> Corpus:
        """Build the corpus from what was kept. Called at the end if there are no faults."""

    def _reason(self, kind: int, a: int, b: int) -> str:
        """Return the reason of a fault of the format's own."""
        return self.reasons[kind].format(a, b)

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes. Raises as soon as there are `MAX_FAULTS` faults."""
        for begin in range(0, len(chunk), _BATCH_BYTES):
            self._take(chunk[begin : begin + _BATCH_BYTES])

    def read(self, chunks: Iterable[bytes]) -> Corpus:
        """Read a corpus from `chunks`, which may end anywhere."""
        for chunk in chunks:
            self.feed(chunk)
        return self.finish()

    def finish(self) -> Corpus:
        """Return the corpus."""
        if not self._skipping:
            self._pending += b"\n"
        self._pending += b"\n"  # A blank line ends the last sentence.
        self._line_start = len(self._pending)
        self._scan_lines()
        if self._state[FAULTS]:
            raise self._invalid()
        if not self._state[TOKENS]:
            raise empty_corpus()
        return self._corpus()

    def _take(self, piece: bytes) -> None:
        if self._skipping:
            newline = piece.find(b"\n")
            if newline < 0:
                return
            piece = piece[newline + 1 :]
            self._skipping = False
        newline = piece.rfind(b"\n")
        if newline >= 0:
            self._line_start = len(self._pending) + newline + 1
        self._pending += piece
        mark = len(_BYTE_ORDER_MARK) if self._at_start else 0
        too_long = len(self._pending) - self._line_start > self._max_line_bytes + 1 + mark
        if too_long or self._line_start >= _BATCH_BYTES:
            self._scan_lines()
        if too_long:
            self._drop_long_line()

    def _drop_long_line(self) -> None:
        """Report the incomplete line, which exceeds the limit, and skip the rest of it."""
        state = self._state
        state[LINE] += 1
        self._faults[state[FAULTS]] = (state[LINE], LONG, self._max_line_bytes, 0)
        state[FAULTS] += 1
        self._raise_when_full()
        self._pending.clear()
        self._line_start = 0
        self._at_start = False
        self._skipping = True

    def _scan_lines(self) -> None:
        """Scan the whole lines in `pending` and keep the rest."""
        lines = bytes(memoryview(self._pending)[: self._line_start])
        del self._pending[: self._line_start]
        self._line_start = 0
        if self._at_start and lines:
            lines = lines.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not lines:
            return
        self._scan(np.frombuffer(lines, np.uint8))
        self._raise_when_full()
        if self._state[FAULTS]:
            # There will be no corpus: the remaining lines are read only for their faults.
            self._blocks.clear()
            self._ends.clear()

    def _keep(self, columns: list[Ids], ends: Places) -> None:
        """Keep a batch: the ids of each column, and the ends of sentences."""
        self._blocks = self._blocks or [[] for _ in columns]
        for block, ids in zip(self._blocks, columns, strict=True):
            block.append(ids)
        self._ends.append(ends)

    def _ids(self, column: int) -> Ids:
        """Return all ids of a column and release the batches: there are never two copies of the whole corpus."""
        ids = np.concatenate(self._blocks[column])
        self._blocks[column] = []
        return ids

    def _offsets(self) -> Places:
        return np.concatenate([np.zeros(1, np.int64), *self._ends])

    def _raise_when_full(self) -> None:
        if self._state[FAULTS] >= MAX_FAULTS:
            raise self._invalid()

    def _invalid(self) -> Invalid:
        count = int(self._state[FAULTS])
        rows: list[list[int]] = self._faults[:count].tolist()
        faults = [Fault(self._describe(kind, a, b), line=line) for line, kind, a, b in rows]
        return invalid_corpus("line", faults)

    def _describe(self, kind: int, a: int, b: int) -> str:
        if kind == LONG:
            return f"longer than {a} bytes"
        if kind == CONTROL:
            return f"control byte 0x{a:02X} at byte {b}"
        if kind == ENCODING:
            return f"not UTF-8: byte 0x{a:02X} at byte {b}"
        return self._reason(kind, a, b)


def invalid_corpus(unit: str, faults: Sequence[Fault]) -> Invalid:
    """Return the error for a corpus with faults; `unit` is what is counted, such as "line"."""
    count = len(faults)
    units = unit if count == 1 else f"{unit}s"
    more = " or more" if count >= MAX_FAULTS else ""
    return Invalid(
        f"The corpus is invalid in {count} {units}{more}. Correct {'it' if count == 1 else 'them'} and try again.",
        faults,
        code="invalid_corpus",
    )


def empty_corpus() -> Invalid:
    """Return the error for a file without tokens."""
    return Invalid(
        "The corpus has no tokens. Provide at least one.",
        [Fault("The file has no token.", line=1)],
        code="empty_corpus",
    )
