r"""Read CRFsuite's training data: a token a line, `label TAB attribute[:value] TAB ...`, a blank line between sequences.

In a name `\:` stands for a colon and `\\` for a backslash; an attribute without a value, or with an empty one, has the
value 1. Fields are apart by tabs only, and empty ones are passed over. What CRFsuite reads without a word and not as
meant is a fault here: a value that is no number, a second value, a label with one, weights of whole sequences.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Bytes, Ids, Places
from core.corpus.bag import MAX_VALUE, Bag, Cells, Values
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.corpus.lines import Batch, Lines
from core.corpus.reading import MAX_FAULTS, no_tokens, undecodable, unreadable
from core.errors import Fault
from core.jit import Scalar, inlined, kernel, readonly

_TAB, _NEWLINE, _RETURN, _COLON, _BACKSLASH, _AT = 9, 10, 13, 58, 92, 64

# Bytes that a field goes on with; the others end it or need a look.
_PLAIN = np.ones(256, np.bool_)
_PLAIN[:32] = False
_PLAIN[[32 + 95, _COLON, _BACKSLASH]] = False

# Places in the state array.
_LINE = 0  # lines read
_TOKENS = 1  # tokens read
_SEQUENCE_START = 2  # tokens before the sequence now open
_FAULTS = 3
_ATTRIBUTES = 4  # found in this batch
_BATCH_TOKENS = 5  # found in this batch
_ENDS = 6  # of sequences, found in this batch
_STATE_SIZE = 7

# Kinds of faults; a fault is (line, kind, a, b).
_LONG, _CONTROL, _NUMBER, _HUGE, _SECOND, _LABEL_VALUE, _DECLARATION, _NAMELESS = range(8)

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
                digits += mantissa > 0
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
            power = min(power * 10 + np.int64(text[i] - 48), 9999)
            i += 1
        if i == first:
            return False
        exponent += -power if falls else power
    value = 0.0
    if mantissa > 0:
        value = _scaled(mantissa, max(min(exponent, 400), -400))
    out[at] = -value if negative else value
    return i == stop


@kernel
def _record(state: Places, faults: Places, kind: int, a: int, b: int) -> None:
    row = state[_FAULTS]
    faults[row, 0] = state[_LINE]
    faults[row, 1] = kind
    faults[row, 2] = a
    faults[row, 3] = b
    state[_FAULTS] += 1


@kernel
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


@kernel
def _line_end(text: Bytes, i: int) -> int:
    while text[i] != _NEWLINE:
        i += 1
    return i


@kernel
def _behind_blanks(text: Bytes, i: int) -> int:
    """The end of the line when only blanks come before it, else `i`."""
    j = i
    while text[j] == 32 or text[j] == _TAB:
        j += 1
    return j if text[j] == _NEWLINE or text[j] == _RETURN else i


@kernel
def _scan(
    text: Bytes, labelled: bool, longest: int, state: Places, starts: Places, stops: Places,
    values: NDArray[np.float64], label_starts: Places, label_stops: Places, counts: Places, ends: Places,
    faults: Places,
) -> None:  # fmt: skip
    """Read whole lines (the text ends in a newline): spans and values of attributes, how many a token has, labels.

    Names lose their escapes in place. `starts` and `stops` have a cell more than there can be attributes, for the span
    of a value.
    """
    attributes, tokens, sequences, i = 0, 0, 0, 0
    while i < text.size and state[_FAULTS] < faults.shape[0]:
        state[_LINE] += 1
        line_start, first, fields = i, attributes, 0
        sound = True
        while sound:
            while text[i] == _TAB:
                i += 1
            if fields == 0:
                i = _behind_blanks(text, i)
            if text[i] == _NEWLINE or (text[i] == _RETURN and text[i + 1] == _NEWLINE):
                break
            if labelled and fields == 0:
                i = _field(text, i, label_starts, tokens)
                begin, end = label_starts[tokens], label_starts[tokens + 1]
                label_stops[tokens] = end
                if end > begin and text[begin] == _AT:
                    _record(state, faults, _DECLARATION, 0, 0)
                    sound = False
                elif text[i] == _COLON:
                    _record(state, faults, _LABEL_VALUE, 0, 0)
                    sound = False
            else:
                i = _field(text, i, starts, attributes)
                stops[attributes] = starts[attributes + 1]
                values[attributes] = 1.0
                if stops[attributes] == starts[attributes] and text[i] == _COLON:
                    _record(state, faults, _NAMELESS, fields + 1, 0)
                    sound = False
                elif text[i] == _COLON:
                    i = _field(text, i + 1, starts, attributes + 1)
                    begin, end = starts[attributes + 1], starts[attributes + 2]
                    if text[i] == _COLON:
                        _record(state, faults, _SECOND, fields + 1, 0)
                        sound = False
                    elif end > begin and not _number(text, begin, end, values, attributes):
                        _record(state, faults, _NUMBER, fields + 1, 0)
                        sound = False
                    elif not abs(values[attributes]) <= MAX_VALUE:
                        _record(state, faults, _HUGE, fields + 1, 0)
                        sound = False
                attributes += 1
            fields += 1
            control = text[i] != _TAB and text[i] != _NEWLINE
            if sound and control and not (text[i] == _RETURN and text[i + 1] == _NEWLINE):
                _record(state, faults, _CONTROL, int(text[i]), i - line_start + 1)
                sound = False
        i = _line_end(text, i)
        if sound and i - line_start > longest:
            _record(state, faults, _LONG, longest, 0)
            sound = False
        i += 1
        if not sound:
            attributes = first
        elif fields:
            counts[tokens] = attributes - first
            tokens += 1
            state[_TOKENS] += 1
        elif state[_TOKENS] > state[_SEQUENCE_START]:
            ends[sequences] = state[_TOKENS]
            sequences += 1
            state[_SEQUENCE_START] = state[_TOKENS]
    state[_ATTRIBUTES], state[_BATCH_TOKENS], state[_ENDS] = attributes, tokens, sequences


class CrfsuiteReader:
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines.

    Without labels every field of a line is an attribute.
    """

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        self._labelled = labelled
        self._max_line_bytes = max_line_bytes
        self._lines = Lines(max_line_bytes)
        self._names, self._labels = empty_pool(1), empty_pool(1)
        self._state = np.zeros(_STATE_SIZE, np.int64)
        self._faults = np.empty((MAX_FAULTS + 1, 4), np.int64)
        self._ids: list[Ids] = []
        self._values: list[Values] = []
        self._gold: list[Ids] = []
        self._counts: list[Places] = []
        self._ends: list[Places] = [np.zeros(1, np.int64)]

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises as soon as `MAX_FAULTS` faults are found."""
        for batch in self._lines.feed(chunk):
            self._take(batch)

    def finish(self) -> Corpus:
        """The corpus of all that was fed."""
        self._take(self._lines.finish())
        if self._state[_FAULTS]:
            raise unreadable(self._found())
        tokens = int(self._state[_TOKENS])
        if not tokens:
            raise no_tokens()
        if tokens > self._state[_SEQUENCE_START]:
            self._ends.append(np.array([tokens], np.int64))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(_joined(self._counts))])
        bag = Bag(vocabulary_of(self._names, 0), Cells.of(starts, _joined(self._ids), _joined(self._values)))
        labels = None
        if self._labelled:
            labels = Column("label", vocabulary_of(self._labels, 0), _joined(self._gold))
        return Corpus((), labels, _joined(self._ends), bag)

    def _take(self, batch: Batch) -> None:
        if batch.lines:
            self._read(batch.lines)
        if batch.then_long:
            self._state[_LINE] += 1
            found = self._state[_FAULTS]
            self._faults[found] = (self._state[_LINE], _LONG, self._max_line_bytes, 0)
            self._state[_FAULTS] += 1
        if self._state[_FAULTS] >= MAX_FAULTS:
            raise unreadable(self._found())

    def _read(self, lines: bytes) -> None:
        fault = undecodable(lines, int(self._state[_LINE]))
        if fault is not None:
            raise unreadable([*self._found(), fault])
        text = np.frombuffer(bytearray(lines), np.uint8)
        # An attribute takes two bytes with what ends it, and so does a token.
        most = len(lines) // 2 + 3
        starts, stops, label_starts, label_stops, counts, ends = np.empty((6, most), np.int64)
        values = np.empty(most)
        _scan(
            text, self._labelled, self._max_line_bytes, self._state, starts, stops, values, label_starts, label_stops,
            counts, ends, self._faults[:MAX_FAULTS],
        )  # fmt: skip
        if self._state[_FAULTS]:
            # No corpus will come of this; further lines are read for their faults only.
            return
        attributes, tokens = self._state[_ATTRIBUTES], self._state[_BATCH_TOKENS]
        text = readonly(text, np.uint8)
        self._names, ids = intern(self._names, text, starts[:attributes], stops[:attributes], 1)
        self._ids.append(ids)
        self._values.append(values[:attributes].astype(np.float32))
        self._counts.append(counts[:tokens].copy())
        self._ends.append(ends[: self._state[_ENDS]].copy())
        if self._labelled:
            self._labels, gold = intern(self._labels, text, label_starts[:tokens], label_stops[:tokens], 1)
            self._gold.append(gold)

    def _found(self) -> list[Fault]:
        rows: list[list[int]] = self._faults[: self._state[_FAULTS]].tolist()
        return [Fault(_reason(kind, a, b), line=line) for line, kind, a, b in rows]


def _joined(blocks: list[NDArray[Scalar]]) -> NDArray[Scalar]:
    """The blocks as one array. They are let go, so that there are never two copies of everything."""
    whole = np.concatenate(blocks)
    blocks.clear()
    return whole


def _reason(kind: int, a: int, b: int) -> str:
    """What a fault says to people."""
    return {
        _LONG: f"longer than {a} bytes",
        _CONTROL: f"control byte 0x{a:02X} at byte {b}",
        _NUMBER: f"field {a}: the value behind the colon is not a number; a colon in a name is written \\:",
        _HUGE: f"field {a}: the value is beyond {MAX_VALUE:g}",
        _SECOND: f"field {a}: a second colon; a colon in a name is written \\:",
        _LABEL_VALUE: "the label has a colon; in a name it is written \\:",
        _DECLARATION: "declarations such as @weight are not read; a label cannot start with @",
        _NAMELESS: f"field {a}: a value without a name",
    }[kind]


def read_crfsuite(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    reader = CrfsuiteReader(max_line_bytes=max_line_bytes, labelled=labelled)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module."""
    read_crfsuite([b"A\ta\\:b:1.5e0\tc\n\n"], max_line_bytes=64)
