"""What readers of line-by-line text share: whole lines out of chunks cut anywhere, and faults with their lines.

Bytes come in chunks cut anywhere. Whole lines go to the format's own kernel in batches; of a line not yet ended at
most `max_line_bytes` are kept, so memory is that of the integer columns and the distinct strings.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from core.corpus.arrays import Bytes, Ids, Places
from core.corpus.corpus import Corpus
from core.errors import Fault, Invalid
from core.jit import inner, kernel

#: A reader stops looking after this many faults: nobody mends more at one go.
MAX_FAULTS = 100

#: Lines go to the kernels in batches of about this size: large against the cost of a call, small against L2.
_BATCH_BYTES = 64 * 1024

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Places in the state array; a format's own come after.
LINE = 0  # lines read
FAULTS = 1
TOKENS = 2  # tokens read
OWN_STATE = 3

# Kinds of faults; a fault is (line, kind, a, b). A format's own come after.
LONG, CONTROL, ENCODING = range(3)
OWN_FAULTS = 3


@inner
def sequence_length(buffer: Bytes, i: int, stop: int) -> int:
    """Bytes of the well-formed UTF-8 character at `i`, 0 if there is none (Unicode standard, table 3-7)."""
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
    """Place of the first byte that is not UTF-8, or -1."""
    i = start
    while i < stop:
        length = sequence_length(buffer, i, stop)
        if length == 0:
            return i
        i += length
    return -1


@kernel
def record(state: Places, faults: Places, kind: int, a: int, b: int) -> None:
    """Note a fault of the present line."""
    row = state[FAULTS]
    faults[row, 0] = state[LINE]
    faults[row, 1] = kind
    faults[row, 2] = a
    faults[row, 3] = b
    state[FAULTS] += 1


@inner
def byte_fault(buffer: Bytes, start: int, stop: int, state: Places, faults: Places) -> bool:
    """Check the bytes of a line for control characters, a tab apart, and for encoding."""
    for i in range(start, stop):
        if (buffer[i] < 32 and buffer[i] != 9) or buffer[i] == 127:
            record(state, faults, CONTROL, int(buffer[i]), i - start + 1)
            return True
    wrong = _encoding_fault(buffer, start, stop)
    if wrong >= 0:
        record(state, faults, ENCODING, int(buffer[wrong]), wrong - start + 1)
        return True
    return False


class LineReader(ABC):
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines."""

    #: What the format's own faults say, with their two numbers as {0} and {1}.
    reasons: ClassVar[Mapping[int, str]] = {}

    def __init__(self, *, max_line_bytes: int, state_size: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._state = np.zeros(state_size, np.int64)
        self._faults = np.empty((MAX_FAULTS, 4), np.int64)
        self._pending = bytearray()  # bytes not yet scanned
        self._line_start = 0  # where in `pending` the line not yet ended begins
        self._skipping = False  # inside a line already reported as too long
        self._at_start = True
        self._blocks: list[list[Ids]] = []  # by column, the ids batch by batch
        self._ends: list[Places] = []  # tokens before the end of each sentence, batch by batch

    @abstractmethod
    def _scan(self, buffer: Bytes) -> None:
        """Read whole lines (the buffer ends in a newline); note faults, or keep ids and sentence ends."""

    @abstractmethod
    def _corpus(self) -> Corpus:
        """What was kept, when all is read and nothing was at fault."""

    def _reason(self, kind: int, a: int, b: int) -> str:
        """What a fault of the format's own says to people."""
        return self.reasons[kind].format(a, b)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises as soon as `MAX_FAULTS` faults are found."""
        for begin in range(0, len(chunk), _BATCH_BYTES):
            self._take(chunk[begin : begin + _BATCH_BYTES])

    def read(self, chunks: Iterable[bytes]) -> Corpus:
        """The corpus in `chunks`, which may be cut anywhere."""
        for chunk in chunks:
            self.feed(chunk)
        return self.finish()

    def finish(self) -> Corpus:
        """The corpus of all that was fed."""
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
        """Report the unfinished line, over the limit already, and wait for its end without keeping it."""
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
        """Scan the whole lines of `pending` and keep the rest."""
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
            # No corpus will come of this; further lines are read for their faults only.
            self._blocks.clear()
            self._ends.clear()

    def _keep(self, columns: list[Ids], ends: Places) -> None:
        """Keep a batch: ids by column, and the ends of sentences."""
        self._blocks = self._blocks or [[] for _ in columns]
        for block, ids in zip(self._blocks, columns, strict=True):
            block.append(ids)
        self._ends.append(ends)

    def _ids(self, column: int) -> Ids:
        """All ids of a column, let go here: never two copies of the whole corpus."""
        ids = np.concatenate(self._blocks[column])
        self._blocks[column] = []
        return ids

    def _offsets(self) -> Places:
        return np.concatenate([np.zeros(1, np.int64), *self._ends])

    def _raise_when_full(self) -> None:
        if self._state[FAULTS] >= MAX_FAULTS:
            raise self._invalid()

    def _invalid(self) -> Invalid:
        found = int(self._state[FAULTS])
        rows: list[list[int]] = self._faults[:found].tolist()
        faults = [Fault(self._said(kind, a, b), line=line) for line, kind, a, b in rows]
        lines = "1 line" if found == 1 else f"{found} lines"
        more = " or more" if found == MAX_FAULTS else ""
        return Invalid(f"The corpus cannot be read: {lines}{more} at fault.", faults, code="invalid_corpus")

    def _said(self, kind: int, a: int, b: int) -> str:
        if kind == LONG:
            return f"longer than {a} bytes"
        if kind == CONTROL:
            return f"control byte 0x{a:02X} at byte {b}"
        if kind == ENCODING:
            return f"not UTF-8: byte 0x{a:02X} at byte {b}"
        return self._reason(kind, a, b)


def empty_corpus() -> Invalid:
    """The error for a file without a token."""
    return Invalid(
        "The corpus has no tokens.", [Fault("no token in the whole file", line=1)], code="empty_corpus"
    )
