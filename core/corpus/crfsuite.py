r"""Read CRFsuite's data: a token a line, `label TAB attribute[:value] TAB ...`, a blank line between sequences.

In a name `\:` stands for a colon and `\\` for a backslash; an attribute without a value, or with an empty one, has the
value 1. Fields are apart by tabs only, and empty ones are passed over. What CRFsuite reads without a word and not as
meant is a fault here: a value that is no number, a second value, a label with one, weights of whole sequences.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Bytes, Places
from core.corpus.bag import MAX_VALUE, Bag, Cells, Values
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
from core.jit import inlined, inner, kernel, readonly

_TAB, _NEWLINE, _RETURN, _SPACE, _COLON, _AT, _BACKSLASH = 9, 10, 13, 32, 58, 64, 92

# Bytes that a field goes on with; the others end it or need a look.
_PLAIN = np.ones(256, np.bool_)
_PLAIN[:32] = False
_PLAIN[[127, _COLON, _BACKSLASH]] = False

# Places in the state array.
_SEQUENCE_START = OWN_STATE  # tokens before the sequence now open
_ATTRIBUTES = OWN_STATE + 1  # found in this batch
_BATCH_TOKENS = OWN_STATE + 2  # found in this batch
_ENDS = OWN_STATE + 3  # of sequences, found in this batch
_STATE_SIZE = OWN_STATE + 4

# Kinds of faults.
_NUMBER, _HUGE, _SECOND, _LABEL_VALUE, _DECLARATION, _NAMELESS = range(OWN_FAULTS, OWN_FAULTS + 6)

#: Powers of ten that float64 has exactly.
_TENS = 10.0 ** np.arange(23)
#: Digits taken into a number; more than float64 can tell apart.
_MOST_DIGITS = 19


@inlined
def _scaled(mantissa: np.uint64, exponent: int) -> float:
    """mantissa * 10 ** exponent; exact to the last digit when both are small, as they are in data."""
    value = float(mantissa)
    while exponent > 0:
        step = min(exponent, 22)
        value *= _TENS[step]
        exponent -= step
    while exponent < 0:
        step = min(-exponent, 22)
        value /= _TENS[step]
        exponent += step
    return value


@kernel
def _number(text: Bytes, start: int, stop: int, out: NDArray[np.float64], at: int) -> bool:
    """Read a decimal number with an optional fraction and exponent into `out[at]`; False when there is none."""
    i = start
    negative = i < stop and text[i] == 45
    if i < stop and (text[i] == 45 or text[i] == 43):
        i += 1
    mantissa, digits, seen, exponent, point = np.uint64(0), 0, 0, 0, False
    while i < stop and (48 <= text[i] <= 57 or (text[i] == 46 and not point)):
        if text[i] == 46:
            point = True
        else:
            seen += 1
            if digits < _MOST_DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
                digits += int(mantissa > 0)
                exponent -= point
            else:
                exponent += not point
        i += 1
    if seen == 0:
        return False
    if i < stop and (text[i] == 101 or text[i] == 69):
        i += 1
        falls = i < stop and text[i] == 45
        if i < stop and (text[i] == 45 or text[i] == 43):
            i += 1
        first, power = i, 0
        while i < stop and 48 <= text[i] <= 57:
            power = min(power * 10 + int(text[i]) - 48, 9999)
            i += 1
        if i == first:
            return False
        exponent += -power if falls else power
    value = 0.0
    if mantissa > 0:
        value = _scaled(mantissa, max(min(exponent, 400), -400))
    out[at] = -value if negative else value
    return i == stop


@inlined
def _field(text: Bytes, i: int, bounds: Places, at: int) -> int:
    """Read a name from `text[i]` on, its escapes undone in place; its bounds go to bounds[at] and the next cell.

    Returns where it ends: at a tab, a colon, a newline or a control character.
    """
    bounds[at] = i
    out = i
    while True:
        while _PLAIN[text[i]]:
            text[out] = text[i]
            i += 1
            out += 1
        if text[i] != _BACKSLASH:
            break
        if text[i + 1] == _BACKSLASH or text[i + 1] == _COLON:
            i += 1
        text[out] = text[i]
        i += 1
        out += 1
    bounds[at + 1] = out
    return i


@inner
def _behind_blanks(text: Bytes, i: int) -> int:
    """The end of the line when only blanks come before it, else `i`."""
    j = i
    while text[j] == _SPACE or text[j] == _TAB:
        j += 1
    return j if _ends_line(text, j) else i


@inlined
def _ends_line(text: Bytes, i: int) -> bool:
    return bool(text[i] == _NEWLINE or (text[i] == _RETURN and text[i + 1] == _NEWLINE))


class Found(NamedTuple):
    """What a batch of lines holds. `starts` has two cells more than there can be attributes: a value's span."""

    starts: Places  # where names of attributes start and stop
    stops: Places
    values: NDArray[np.float64]
    label_starts: Places  # likewise, a cell more
    label_stops: Places
    counts: Places  # attributes a token
    ends: Places  # tokens before the end of each sequence


@inlined
def _label(text: Bytes, i: int, token: int, found: Found, state: Places, faults: Places) -> int:
    """Read a label; returns where it ends, or -1 when it is none."""
    i = _field(text, i, found.label_starts, token)
    begin, found.label_stops[token] = found.label_starts[token], found.label_starts[token + 1]
    if text[begin] == _AT:
        record(state, faults, _DECLARATION, 0, 0)
        return -1
    if text[i] == _COLON:
        record(state, faults, _LABEL_VALUE, 0, 0)
        return -1
    return i


@inlined
def _attribute(
    text: Bytes, i: int, attribute: int, field: int, found: Found, state: Places, faults: Places
) -> int:
    """Read an attribute and its value; returns where it ends, or -1 when it is none."""
    i = _field(text, i, found.starts, attribute)
    found.stops[attribute], found.values[attribute] = found.starts[attribute + 1], 1.0
    if text[i] != _COLON:
        return i
    i = _field(text, i + 1, found.starts, attribute + 1)
    begin, end = found.starts[attribute + 1], found.starts[attribute + 2]
    fault = 0
    if found.stops[attribute] == found.starts[attribute]:
        fault = _NAMELESS
    elif text[i] == _COLON:
        fault = _SECOND
    elif end > begin and not _number(text, begin, end, found.values, attribute):
        fault = _NUMBER
    elif not abs(found.values[attribute]) <= MAX_VALUE:
        fault = _HUGE
    if fault:
        record(state, faults, fault, field, 0)
        return -1
    return i


@inlined
def _line(
    text: Bytes,
    i: int,
    labelled: bool,
    token: int,
    attribute: int,
    found: Found,
    state: Places,
    faults: Places,
) -> tuple[int, int]:
    """Read the fields of a line; (how many there are, or -1 when one is at fault; where the line ends, with luck)."""
    fields = 0
    while True:
        while text[i] == _TAB:
            i += 1
        if fields == 0:
            i = _behind_blanks(text, i)
        if _ends_line(text, i):
            return fields, i
        if labelled and fields == 0:
            i = _label(text, i, token, found, state, faults)
        else:
            number = attribute + fields - labelled
            i = _attribute(text, i, number, fields + 1, found, state, faults)
        fields += 1
        if i < 0:
            return -1, i
        if text[i] != _TAB and not _ends_line(text, i):
            return -2, i


@kernel
def _scan(
    source: Bytes, text: Bytes, labelled: bool, longest: int, state: Places, found: Found, faults: Places
) -> None:
    """Read whole lines (they end in a newline). `text` is a copy of `source`, in which names lose their escapes."""
    attributes, tokens, sequences, i = 0, 0, 0, 0
    while i < text.size and state[FAULTS] < faults.shape[0]:
        state[LINE] += 1
        begin, sound = i, True
        fields, _ = _line(text, i, labelled, tokens, attributes, found, state, faults)
        odd = False
        while source[i] != _NEWLINE:
            odd |= source[i] > 126 or source[i] < 32
            i += 1
        if i - begin > longest:
            # What else is wrong with the line does not matter.
            state[FAULTS] -= fields == -1
            record(state, faults, LONG, longest, 0)
            sound = False
        elif fields == -1:
            sound = False
        elif odd:
            end = i - 1 if i > begin and source[i - 1] == _RETURN else i
            sound = not byte_fault(source, begin, end, state, faults)
        i += 1
        if not sound:
            continue
        if fields:
            found.counts[tokens] = fields - labelled
            attributes += fields - labelled
            tokens += 1
            state[TOKENS] += 1
        elif state[TOKENS] > state[_SEQUENCE_START]:
            found.ends[sequences] = state[TOKENS]
            sequences += 1
            state[_SEQUENCE_START] = state[TOKENS]
    state[_ATTRIBUTES], state[_BATCH_TOKENS], state[_ENDS] = attributes, tokens, sequences


class CrfsuiteReader(LineReader):
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines.

    Without labels every field of a line is an attribute.
    """

    reasons: ClassVar[Mapping[int, str]] = {
        _NUMBER: "field {0}: the value behind the colon is not a number; a colon in a name is written \\:",
        _HUGE: f"field {{0}}: the value lies beyond {MAX_VALUE:g}",
        _SECOND: "field {0}: a second colon; a colon in a name is written \\:",
        _LABEL_VALUE: "the label has a colon; in a name it is written \\:",
        _DECLARATION: "a declaration such as @weight; a label cannot start with @",
        _NAMELESS: "field {0}: a value without a name",
    }

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=_STATE_SIZE)
        self._labelled = labelled
        self._names, self._labels = empty_pool(1), empty_pool(1)
        self._values: list[Values] = []
        self._counts: list[Places] = []

    def _scan(self, buffer: Bytes) -> None:
        # An attribute takes two bytes with what ends it, and so does a token.
        most = buffer.size // 2 + 3
        starts, stops, label_starts, label_stops, counts, ends = (np.empty(most, np.int64) for _ in range(6))
        found = Found(starts, stops, np.empty(most), label_starts, label_stops, counts, ends)
        text = buffer.copy()
        _scan(buffer, text, self._labelled, self._max_line_bytes, self._state, found, self._faults)
        if self._state[FAULTS]:
            return
        attributes, tokens = int(self._state[_ATTRIBUTES]), int(self._state[_BATCH_TOKENS])
        text = readonly(text, np.uint8)
        self._names, ids = intern(self._names, text, starts[:attributes], stops[:attributes], 1)
        columns = [ids]
        if self._labelled:
            self._labels, gold = intern(self._labels, text, label_starts[:tokens], label_stops[:tokens], 1)
            columns.append(gold)
        self._keep(columns, ends[: self._state[_ENDS]].copy())
        self._values.append(found.values[:attributes].astype(np.float32))
        self._counts.append(counts[:tokens].copy())

    def _corpus(self) -> Corpus:
        starts = np.concatenate([np.zeros(1, np.int64), *self._counts]).cumsum()
        cells = Cells.of(starts, self._ids(0), np.concatenate(self._values))
        self._values.clear()
        labels = Column("label", vocabulary_of(self._labels, 0), self._ids(1)) if self._labelled else None
        return Corpus((), labels, self._offsets(), Bag(vocabulary_of(self._names, 0), cells))


def read_crfsuite(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    return CrfsuiteReader(max_line_bytes=max_line_bytes, labelled=labelled).read(chunks)


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module."""
    read_crfsuite([b"A\ta\\:b:1.5e0\tc\n\n"], max_line_bytes=64)
