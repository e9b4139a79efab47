"""Read column text: a token a line, columns apart by blanks, a blank line between sentences.

Whole lines go through a kernel that checks and splits them, then one that numbers the fields.
"""

from collections.abc import Iterable

import numpy as np

from core.corpus.arrays import Bytes, Places
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.corpus.lines import (
    FAULTS,
    LINE,
    LONG,
    OWN_FAULTS,
    OWN_STATE,
    TOKENS,
    LineReader,
    byte_fault,
    record,
)
from core.jit import inner, kernel

#: Real corpora have under 20 columns; the bound keeps a line of a million letters from as many columns.
MAX_COLUMNS = 256

_MARKER_SIZE = 10  # of -DOCSTART-

# Kinds of bytes. Odd ones stay in their field and have the line looked at again.
_PLAIN, _ODD, _BLANK, _NEWLINE = range(4)
_KINDS = np.full(256, _ODD, np.uint8)
_KINDS[33:127] = _PLAIN
_KINDS[[9, 32]] = _BLANK
_KINDS[10] = _NEWLINE

# Places in the state array.
_WIDTH = OWN_STATE  # columns a line, 0 until the first
_WIDTH_LINE = OWN_STATE + 1  # the line that set the width
_SENTENCE_START = OWN_STATE + 2  # tokens before the sentence now open
_NARROW_SEEN = OWN_STATE + 3  # whether a line below the least width was reported
_ENDS = OWN_STATE + 4  # sentence ends found in this batch
_CELLS = OWN_STATE + 5  # cells filled in this batch
_STATE_SIZE = OWN_STATE + 6

# Kinds of faults.
_RAGGED, _NARROW, _WIDE = range(OWN_FAULTS, OWN_FAULTS + 3)


@inner
def _is_document_start(buffer: Bytes, start: int) -> bool:
    """Whether a field of ten bytes reads -DOCSTART-."""
    marker = (45, 68, 79, 67, 83, 84, 65, 82, 84, 45)
    k = 0
    while k < _MARKER_SIZE and buffer[start + k] == marker[k]:
        k += 1
    return k == _MARKER_SIZE


@inner
def _width_fault(count: int, least: int, most: int, state: Places, faults: Places) -> bool:
    """Check the number of fields of a token line; the first good line sets what the others must have."""
    if state[_WIDTH] == 0:
        if count < least:
            # Said once: a file without labels has this fault in every line.
            if state[_NARROW_SEEN] == 0:
                record(state, faults, _NARROW, count, least)
                state[_NARROW_SEEN] = 1
            return True
        if count > most:
            record(state, faults, _WIDE, count, most)
            return True
        state[_WIDTH] = count
        state[_WIDTH_LINE] = state[LINE]
    if count != state[_WIDTH]:
        record(state, faults, _RAGGED, count, 0)
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
    while i < buffer.size and state[FAULTS] < faults.shape[0]:
        state[LINE] += 1
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
            record(state, faults, LONG, limits[0], 0)
            continue
        if odd:
            if buffer[line_stop - 1] == 13:
                # The carriage return was taken for the end of the last field, or for a field of its own.
                line_stop -= 1
                stops[cells + count - 1] = line_stop
                count -= starts[cells + count - 1] == line_stop
            if byte_fault(buffer, line_start, line_stop, state, faults):
                continue
        if count == 0 or (
            stops[cells] - starts[cells] == _MARKER_SIZE and _is_document_start(buffer, starts[cells])
        ):
            if state[TOKENS] > state[_SENTENCE_START]:
                ends[sentences] = state[TOKENS]
                sentences += 1
                state[_SENTENCE_START] = state[TOKENS]
        elif count == state[_WIDTH] or not _width_fault(count, limits[1], limits[2], state, faults):
            cells += count
            state[TOKENS] += 1
    state[_CELLS] = cells
    state[_ENDS] = sentences


class ConllReader(LineReader):
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines."""

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=_STATE_SIZE)
        self._labelled = labelled
        self._limits = np.array([max_line_bytes, 2 if labelled else 1, MAX_COLUMNS], np.int64)
        self._pool = empty_pool(MAX_COLUMNS)

    def _scan(self, buffer: Bytes) -> None:
        # A field takes two bytes with what ends it, and so does a sentence at the least.
        most = buffer.size // 2 + 1
        starts, stops, ends = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
        _scan(buffer, self._limits, self._state, starts, stops, ends, self._faults)
        width, cells = int(self._state[_WIDTH]), self._state[_CELLS]
        if width and not self._state[FAULTS]:
            self._pool, ids = intern(self._pool, buffer, starts[:cells], stops[:cells], width)
            columns = [ids[column::width].copy() for column in range(width)]
            self._keep(columns, ends[: self._state[_ENDS]].copy())

    def _corpus(self) -> Corpus:
        columns = [
            Column(str(number), vocabulary_of(self._pool, number), self._ids(number))
            for number in range(len(self._blocks))
        ]
        offsets = self._offsets()
        if not self._labelled:
            return Corpus(tuple(columns), None, offsets)
        labels = Column("label", columns[-1].vocabulary, columns[-1].ids)
        return Corpus(tuple(columns[:-1]), labels, offsets)

    def _reason(self, kind: int, a: int, b: int) -> str:
        if kind == _RAGGED:
            width, line = int(self._state[_WIDTH]), int(self._state[_WIDTH_LINE])
            return f"expected {_columns(width)} as in line {line}, found {a}"
        if kind == _NARROW:
            return f"{_columns(a)}; a labelled corpus needs at least {b}, the label last"
        return f"{a} columns; at most {b} are read"


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def read_conll(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    return ConllReader(max_line_bytes=max_line_bytes, labelled=labelled).read(chunks)


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module and of `intern`."""
    read_conll([b"a b\n\n-DOCSTART- x\n\xc3\xa4 b\n"], max_line_bytes=64)
