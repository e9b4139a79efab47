"""Kernels that split column text into fields."""

import numpy as np

from tagsmith.core.base.arrays import Bytes, Places
from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.corpus.formats.lines import (
    FAULTS,
    LINE,
    LONG,
    OWN_FAULTS,
    OWN_STATE,
    TOKENS,
    byte_fault,
    record,
)

#: Marks the start of a document. Such a line is not a token.
DOCUMENT_START = "-DOCSTART-"
_MARKER_SIZE = len(DOCUMENT_START)

# Kinds of bytes. An odd byte belongs to its field and causes a second check of the line.
_PLAIN, _ODD, _BLANK, _NEWLINE = range(4)
BLANK_KINDS = np.full(256, _ODD, np.uint8)
BLANK_KINDS[33:127] = _PLAIN
BLANK_KINDS[[9, 32]] = _BLANK
BLANK_KINDS[10] = _NEWLINE
#: Only tabs separate columns, so that fields may contain blanks.
TAB_KINDS = BLANK_KINDS.copy()
TAB_KINDS[32] = _PLAIN
_HASH, _TAB, _SPACE = 35, 9, 32

# Indices of the state array.
WIDTH = OWN_STATE  # columns per line, 0 before the first line
WIDTH_LINE = OWN_STATE + 1  # the line that determined the width
_SENTENCE_START = OWN_STATE + 2  # tokens before the current sentence
_NARROW_SEEN = OWN_STATE + 3  # whether a line with too few columns was reported
ENDS = OWN_STATE + 4  # sentence ends in this batch
CELLS = OWN_STATE + 5  # cells in this batch
EXPECTED = OWN_STATE + 6  # columns of the first line that is not a comment, until WIDTH is known
STATE_SIZE = OWN_STATE + 7

# Kinds of faults.
RAGGED, NARROW, WIDE = range(OWN_FAULTS, OWN_FAULTS + 3)


@inner
def _is_document_start(buffer: Bytes, start: int) -> bool:
    """Whether a field of ten bytes is -DOCSTART-."""
    marker = (45, 68, 79, 67, 83, 84, 65, 82, 84, 45)
    k = 0
    while k < _MARKER_SIZE and buffer[start + k] == marker[k]:
        k += 1
    return k == _MARKER_SIZE


@inner
def _is_comment(buffer: Bytes, start: int, count: int, state: Places) -> bool:
    """Whether a line before a sentence begins with a hash and a blank, and has other columns than tokens have."""
    if buffer[start] != _HASH or (buffer[start + 1] != _SPACE and buffer[start + 1] != _TAB):
        return False
    width = state[WIDTH] or state[EXPECTED]
    return bool(state[TOKENS] == state[_SENTENCE_START] and count != width)


@inner
def _width_fault(count: int, least: int, most: int, state: Places, faults: Places) -> bool:
    """Check the number of fields of a token line. The first valid line determines the number for all others."""
    if state[WIDTH] == 0:
        if count < least:
            # Reported once: a file without labels has this fault in every line.
            if state[_NARROW_SEEN] == 0:
                record(state, faults, NARROW, count, least)
                state[_NARROW_SEEN] = 1
            return True
        if count > most:
            record(state, faults, WIDE, count, most)
            return True
        state[WIDTH] = count
        state[WIDTH_LINE] = state[LINE]
    if count != state[WIDTH]:
        record(state, faults, RAGGED, count, 0)
        return True
    return False


@kernel
def scan(
    buffer: Bytes,
    kinds: Bytes,
    limits: Places,
    state: Places,
    starts: Places,
    stops: Places,
    ends: Places,
    faults: Places,
) -> None:
    """Read whole lines (the buffer ends with a newline): the spans of the fields, row by row, and sentence ends.

    `kinds` is BLANK_KINDS or TAB_KINDS, and `limits` is (longest line, fewest columns, most columns). Functions are
    called only for rare lines: a call in every line would be a large part of the time.
    """
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
                # The carriage return was read as the end of the last field, or as a field.
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
        elif count == state[WIDTH] or not (
            _is_comment(buffer, line_start, count, state)
            or _width_fault(count, limits[1], limits[2], state, faults)
        ):
            cells += count
            state[TOKENS] += 1
    state[CELLS] = cells
    state[ENDS] = sentences
