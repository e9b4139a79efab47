"""Read column text: a token a line, columns apart by blanks, a blank line between sentences.

Bytes come in chunks cut anywhere. Whole lines go through a kernel that checks and splits them, then one that
numbers the fields; of a line not yet ended at most `max_line_bytes` are kept, so memory is that of the
integer columns and the distinct strings.
"""

from collections.abc import Iterable

import numpy as np

from core.corpus.arrays import Bytes, Ids, Places
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.errors import Fault, Invalid
from core.jit import kernel

#: A reader stops looking after this many faults: nobody mends more at one go.
MAX_FAULTS = 100

#: Real corpora have under 20 columns; the bound keeps a line of a million letters from as many columns.
MAX_COLUMNS = 256

#: Lines go to the kernels in batches of about this size: large against the cost of a call, small against L2.
_BATCH_BYTES = 64 * 1024

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_MARKER_SIZE = 10  # of -DOCSTART-

# Kinds of bytes. Odd ones stay in their field and have the line looked at again.
_PLAIN, _ODD, _BLANK, _NEWLINE = range(4)
_KINDS = np.full(256, _ODD, np.uint8)
_KINDS[33:127] = _PLAIN
_KINDS[[9, 32]] = _BLANK
_KINDS[10] = _NEWLINE

# Places in the state array.
_LINE = 0  # lines read
_WIDTH = 1  # columns a line, 0 until the first
_WIDTH_LINE = 2  # the line that set the width
_TOKENS = 3  # tokens read
_SENTENCE_START = 4  # tokens before the sentence now open
_FAULTS = 5
_NARROW_SEEN = 6  # whether a line below the least width was reported
_ENDS = 7  # sentence ends found in this batch
_CELLS = 8  # cells filled in this batch
_STATE_SIZE = 9

# Kinds of faults; a fault is (line, kind, a, b).
_LONG, _CONTROL, _ENCODING, _RAGGED, _NARROW, _WIDE = range(6)


@kernel
def _sequence_length(buffer: Bytes, i: int, stop: int) -> int:
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
        length = _sequence_length(buffer, i, stop)
        if length == 0:
            return i
        i += length
    return -1


@kernel
def _record(state: Places, faults: Places, kind: int, a: int, b: int) -> None:
    """Note a fault of the present line."""
    row = state[_FAULTS]
    faults[row, 0] = state[_LINE]
    faults[row, 1] = kind
    faults[row, 2] = a
    faults[row, 3] = b
    state[_FAULTS] += 1


@kernel
def _is_document_start(buffer: Bytes, start: int) -> bool:
    """Whether a field of ten bytes reads -DOCSTART-."""
    marker = (45, 68, 79, 67, 83, 84, 65, 82, 84, 45)
    k = 0
    while k < _MARKER_SIZE and buffer[start + k] == marker[k]:
        k += 1
    return k == _MARKER_SIZE


@kernel
def _byte_fault(buffer: Bytes, start: int, stop: int, state: Places, faults: Places) -> bool:
    """Check the bytes of a line for control characters and encoding; blanks stand between fields only."""
    for i in range(start, stop):
        if (buffer[i] < 32 and buffer[i] != 9) or buffer[i] == 127:
            _record(state, faults, _CONTROL, int(buffer[i]), i - start + 1)
            return True
    wrong = _encoding_fault(buffer, start, stop)
    if wrong >= 0:
        _record(state, faults, _ENCODING, int(buffer[wrong]), wrong - start + 1)
        return True
    return False


@kernel
def _width_fault(count: int, least: int, most: int, state: Places, faults: Places) -> bool:
    """Check the number of fields of a token line; the first good line sets what the others must have."""
    if state[_WIDTH] == 0:
        if count < least:
            # Said once: a file without labels has this fault in every line.
            if state[_NARROW_SEEN] == 0:
                _record(state, faults, _NARROW, count, least)
                state[_NARROW_SEEN] = 1
            return True
        if count > most:
            _record(state, faults, _WIDE, count, most)
            return True
        state[_WIDTH] = count
        state[_WIDTH_LINE] = state[_LINE]
    if count != state[_WIDTH]:
        _record(state, faults, _RAGGED, count, 0)
        return True
    return False


@kernel
def _scan(
    buffer: Bytes, limits: Places, state: Places, starts: Places, stops: Places, ends: Places, faults: Places
) -> None:
    """Read whole lines (the buffer ends in a newline): spans of the fields, row by row, and sentence ends.

    `limits` is (longest line, fewest columns, most columns). Calls are kept to rare lines: a call with arrays
    costs reference counts, which are as dear as the rest of a line.
    """
    kinds = _KINDS
    cells = 0
    sentences = 0
    i = 0
    while i < buffer.size and state[_FAULTS] < faults.shape[0]:
        state[_LINE] += 1
        line_start = i
        count = 0
        odd = 0
        kind = kinds[buffer[i]]
        while kind != _NEWLINE:
            if kind == _BLANK:
                i += 1
            else:
                starts[cells + count] = i
                while kind <= _ODD:
                    odd |= kind
                    i += 1
                    kind = kinds[buffer[i]]
                stops[cells + count] = i
                count += 1
            kind = kinds[buffer[i]]
        line_stop = i
        i += 1
        if line_stop - line_start > limits[0]:
            _record(state, faults, _LONG, limits[0], 0)
            continue
        if odd:
            if buffer[line_stop - 1] == 13:
                # The carriage return was taken for the end of the last field, or for a field of its own.
                line_stop -= 1
                stops[cells + count - 1] = line_stop
                count -= starts[cells + count - 1] == line_stop
            if _byte_fault(buffer, line_start, line_stop, state, faults):
                continue
        if count == 0 or (
            stops[cells] - starts[cells] == _MARKER_SIZE and _is_document_start(buffer, starts[cells])
        ):
            if state[_TOKENS] > state[_SENTENCE_START]:
                ends[sentences] = state[_TOKENS]
                sentences += 1
                state[_SENTENCE_START] = state[_TOKENS]
        elif count == state[_WIDTH] or not _width_fault(count, limits[1], limits[2], state, faults):
            cells += count
            state[_TOKENS] += 1
    state[_CELLS] = cells
    state[_ENDS] = sentences


class ConllReader:
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines."""

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        self._labelled = labelled
        self._max_line_bytes = max_line_bytes
        self._limits = np.array([max_line_bytes, 2 if labelled else 1, MAX_COLUMNS], np.int64)
        self._pool = empty_pool(MAX_COLUMNS)
        self._state = np.zeros(_STATE_SIZE, np.int64)
        self._faults = np.empty((MAX_FAULTS, 4), np.int64)
        self._pending = bytearray()  # bytes not yet scanned
        self._line_start = 0  # where in `pending` the line not yet ended begins
        self._skipping = False  # inside a line already reported as too long
        self._at_start = True
        self._blocks: list[list[Ids]] = []  # by column, the ids batch by batch
        self._ends: list[Places] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises as soon as `MAX_FAULTS` faults are found."""
        for begin in range(0, len(chunk), _BATCH_BYTES):
            self._take(chunk[begin : begin + _BATCH_BYTES])

    def finish(self) -> Corpus:
        """The corpus of all that was fed."""
        if not self._skipping:
            self._pending += b"\n"
        self._pending += b"\n"  # A blank line ends the last sentence.
        self._line_start = len(self._pending)
        self._scan_lines()
        if self._state[_FAULTS]:
            raise self._invalid()
        if not self._state[_TOKENS]:
            raise Invalid(
                "The corpus has no tokens.",
                [Fault("no token in the whole file", line=1)],
                code="empty_corpus",
            )
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
        too_long = len(self._pending) - self._line_start > self._max_line_bytes + 1
        if too_long or self._line_start >= _BATCH_BYTES:
            self._scan_lines()
        if too_long:
            self._drop_long_line()

    def _drop_long_line(self) -> None:
        """Report the unfinished line, over the limit already, and wait for its end without keeping it."""
        state = self._state
        state[_LINE] += 1
        self._faults[state[_FAULTS]] = (state[_LINE], _LONG, self._max_line_bytes, 0)
        state[_FAULTS] += 1
        self._raise_when_full()
        self._pending.clear()
        self._line_start = 0
        self._skipping = True

    def _scan_lines(self) -> None:
        """Run the kernel over the whole lines of `pending` and keep the rest."""
        lines = bytes(memoryview(self._pending)[: self._line_start])
        del self._pending[: self._line_start]
        self._line_start = 0
        if self._at_start and lines:
            lines = lines.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not lines:
            return
        # A field takes two bytes with what ends it, and so does a sentence at the least.
        most = len(lines) // 2 + 1
        starts, stops, ends = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
        buffer = np.frombuffer(lines, np.uint8)
        _scan(buffer, self._limits, self._state, starts, stops, ends, self._faults)
        self._raise_when_full()
        if self._state[_FAULTS]:
            # No corpus will come of this; further lines are read for their faults only.
            self._blocks.clear()
            self._ends.clear()
        elif self._state[_WIDTH]:
            cells = self._state[_CELLS]
            self._keep(buffer, starts[:cells], stops[:cells])
            self._ends.append(ends[: self._state[_ENDS]].copy())

    def _keep(self, buffer: Bytes, starts: Places, stops: Places) -> None:
        width = int(self._state[_WIDTH])
        self._pool, ids = intern(self._pool, buffer, starts, stops, width)
        self._blocks = self._blocks or [[] for _ in range(width)]
        for column, block in enumerate(self._blocks):
            block.append(ids[column::width].copy())

    def _corpus(self) -> Corpus:
        columns = []
        for number in range(len(self._blocks)):
            ids = np.concatenate(self._blocks[number])
            self._blocks[number] = []  # Let go as we go: never two copies of the whole corpus.
            columns.append(Column(str(number), vocabulary_of(self._pool, number), ids))
        offsets = np.concatenate([np.zeros(1, np.int64), *self._ends])
        if not self._labelled:
            return Corpus(tuple(columns), None, offsets)
        labels = Column("label", columns[-1].vocabulary, columns[-1].ids)
        return Corpus(tuple(columns[:-1]), labels, offsets)

    def _raise_when_full(self) -> None:
        if self._state[_FAULTS] >= MAX_FAULTS:
            raise self._invalid()

    def _invalid(self) -> Invalid:
        found = int(self._state[_FAULTS])
        width, width_line = int(self._state[_WIDTH]), int(self._state[_WIDTH_LINE])
        rows: list[list[int]] = self._faults[:found].tolist()
        faults = [Fault(_reason(kind, a, b, width, width_line), line=line) for line, kind, a, b in rows]
        lines = "1 line" if found == 1 else f"{found} lines"
        more = " or more" if found == MAX_FAULTS else ""
        return Invalid(f"The corpus cannot be read: {lines}{more} at fault.", faults, code="invalid_corpus")


def _reason(kind: int, a: int, b: int, width: int, width_line: int) -> str:
    """What a fault says to people."""
    if kind == _LONG:
        return f"longer than {a} bytes"
    if kind == _CONTROL:
        return f"control byte 0x{a:02X} at byte {b}"
    if kind == _ENCODING:
        return f"not UTF-8: byte 0x{a:02X} at byte {b}"
    if kind == _RAGGED:
        return f"expected {_columns(width)} as in line {width_line}, found {a}"
    if kind == _NARROW:
        return f"{_columns(a)}; a labelled corpus needs at least {b}, the label last"
    return f"{a} columns; at most {b} are read"


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def read_conll(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    reader = ConllReader(max_line_bytes=max_line_bytes, labelled=labelled)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module and of `intern`."""
    read_conll([b"a b\n\n-DOCSTART- x\n\xc3\xa4 b\n"], max_line_bytes=64)
