"""Read CoNLL-U: ten fields a word, apart by tabs; a blank line after each sentence; comments after `#`.

Words are the lines numbered 1, 2, 3 and so on. Lines of multiword tokens (`1-2`) and of empty nodes (`8.1`) are checked
and left out: the words of a multiword token have lines of their own, and an empty node stands for nothing in the text.
(https://universaldependencies.org/format.html)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

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

#: The fields of a line, in their order.
FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_WIDTH = len(FIELDS)

#: Numbers of more digits are no numbers of words, and would not fit.
_MAX_DIGITS = 9

# Places in the state array.
_WORD = OWN_STATE  # number of the last word of the sentence now open, 0 when none is
_ENDS = OWN_STATE + 1  # sentence ends found in this batch
_CELLS = OWN_STATE + 2  # cells filled in this batch
_STATE_SIZE = OWN_STATE + 3

# Kinds of faults.
_FIELD_COUNT, _NUMBER, _ORDER, _EMPTY = range(OWN_FAULTS, OWN_FAULTS + 4)

# What a line can be the line of.
_NEITHER, _IS_WORD, _IS_OTHER = range(3)


@kernel
def _number(buffer: Bytes, start: int, stop: int, found: Places) -> int:
    """Read digits without a leading zero at `start` into found[0]; the place after them, or `start` if wrong."""
    i = start
    value = 0
    while i < stop and 48 <= buffer[i] <= 57:
        value = 10 * value + int(buffer[i]) - 48
        i += 1
        if i - start > _MAX_DIGITS:
            return start
    found[0] = value
    return start if buffer[start] == 48 and i - start > 1 else i


@inner
def _line_kind(buffer: Bytes, start: int, stop: int, found: Places) -> int:
    """What the first field says: a word with its number in found[0], a range or an empty node, or neither."""
    i = _number(buffer, start, stop, found)
    if i == start:
        return _NEITHER
    if i == stop:
        return _IS_WORD
    first = found[0]
    separator = buffer[i]
    end = _number(buffer, i + 1, stop, found) if i + 1 < stop else i + 1
    sound = end == stop and end > i + 1
    if separator == 45:
        return _IS_OTHER if sound and 0 < first <= found[0] else _NEITHER
    return _IS_OTHER if sound and separator == 46 and found[0] > 0 else _NEITHER


@inner
def _is_blank(buffer: Bytes, start: int, stop: int) -> bool:
    """Whether there is nothing but spaces and tabs."""
    i = start
    while i < stop and (buffer[i] == 32 or buffer[i] == 9):
        i += 1
    return i == stop


@kernel
def _split(buffer: Bytes, start: int, bounds: Places) -> tuple[int, int]:
    """(where the line ends, its tabs); the fields begin at `bounds`, of which the last is after the end."""
    stop, tabs = start, 0
    bounds[0] = start
    while buffer[stop] != 10:
        if buffer[stop] == 9:
            tabs += 1
            bounds[min(tabs, _WIDTH)] = stop + 1
        stop += 1
    return stop, tabs


@inner
def _word(chosen: Places, bounds: Places, number: int, state: Places, spans: Places, faults: Places) -> None:
    """Take the chosen fields of the line of a word."""
    if number != state[_WORD] + 1:
        record(state, faults, _ORDER, number, state[_WORD] + 1)
    state[_WORD] = number
    row = state[_CELLS]
    for k in range(chosen.size):
        spans[row + k, 0], spans[row + k, 1] = bounds[chosen[k]], bounds[chosen[k] + 1] - 1
        if spans[row + k, 0] == spans[row + k, 1] and state[FAULTS] < faults.shape[0]:
            record(state, faults, _EMPTY, chosen[k], 0)
    state[_CELLS] += chosen.size
    state[TOKENS] += 1


@kernel
def _scan(
    buffer: Bytes,
    limit: int,
    chosen: Places,
    bounds: Places,
    state: Places,
    spans: Places,
    ends: Places,
    faults: Places,
) -> None:
    """Read whole lines (the buffer ends in a newline): spans of the chosen fields, row by row, and sentence ends.

    `bounds` (fields + 2,) is scratch: where the fields of a line begin, and last a number.
    """
    state[_CELLS], state[_ENDS] = 0, 0
    number = bounds[_WIDTH + 1 :]
    following = 0
    while following < buffer.size and state[FAULTS] < faults.shape[0]:
        state[LINE] += 1
        i = following
        stop, tabs = _split(buffer, i, bounds)
        following = stop + 1
        stop -= stop > i and buffer[stop - 1] == 13
        if stop - i > limit:
            record(state, faults, LONG, limit, 0)
        elif byte_fault(buffer, i, stop, state, faults):
            continue
        elif _is_blank(buffer, i, stop):
            if state[_WORD]:
                ends[state[_ENDS]] = state[TOKENS]
                state[_ENDS] += 1
                state[_WORD] = 0
        elif buffer[i] != 35:
            bounds[_WIDTH] = stop + 1
            kind = _line_kind(buffer, i, bounds[1] - 1, number) if tabs == _WIDTH - 1 else _NEITHER
            if tabs != _WIDTH - 1:
                record(state, faults, _FIELD_COUNT, tabs + 1, _WIDTH)
            elif kind == _NEITHER:
                record(state, faults, _NUMBER, 0, 0)
            elif kind == _IS_WORD:
                _word(chosen, bounds, number[0], state, spans, faults)


class ConlluReader(LineReader):
    """Gives the fields `columns` by their names, and the field `label` as labels."""

    reasons: ClassVar[Mapping[int, str]] = {
        _FIELD_COUNT: "{1} fields apart by tabs are needed, found {0}",
        _NUMBER: "the first field is not the number of a word, such as 3, nor 3-4 nor 3.1",
        _ORDER: "word {1} was expected, found {0}",
    }

    def __init__(
        self,
        *,
        max_line_bytes: int,
        labelled: bool = True,
        columns: Sequence[str] = ("form",),
        label: str = "upos",
    ) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=_STATE_SIZE)
        self._columns = tuple(columns)
        self._labelled = labelled
        fields = [*columns, label] if labelled else [*columns]
        self._chosen = np.array([FIELDS.index(field) for field in fields], np.int64)
        self._pool = empty_pool(self._chosen.size)

    def _reason(self, kind: int, a: int, b: int) -> str:
        return f"the field {FIELDS[a]} is empty" if kind == _EMPTY else super()._reason(kind, a, b)

    def _scan(self, buffer: Bytes) -> None:
        width = self._chosen.size
        # A word takes at least as many bytes as its line has tabs, its number and its end; an empty line is one.
        most = buffer.size // (_WIDTH + 1) + 1
        spans, ends = np.empty((most * width, 2), np.int64), np.empty(most + 1, np.int64)
        bounds = np.empty(_WIDTH + 2, np.int64)
        _scan(buffer, self._max_line_bytes, self._chosen, bounds, self._state, spans, ends, self._faults)
        if not self._state[FAULTS]:
            found = spans[: self._state[_CELLS]]
            self._pool, ids = intern(self._pool, buffer, found[:, 0], found[:, 1], width)
            self._keep([ids[k::width].copy() for k in range(width)], ends[: self._state[_ENDS]].copy())

    def _corpus(self) -> Corpus:
        columns = tuple(
            Column(name, vocabulary_of(self._pool, number), self._ids(number))
            for number, name in enumerate(self._columns)
        )
        last = len(columns)
        labels = Column("label", vocabulary_of(self._pool, last), self._ids(last)) if self._labelled else None
        return Corpus(columns, labels, self._offsets())


def read_conllu(
    chunks: Iterable[bytes],
    *,
    max_line_bytes: int,
    labelled: bool = True,
    columns: Sequence[str] = ("form",),
    label: str = "upos",
) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    return ConlluReader(max_line_bytes=max_line_bytes, labelled=labelled, columns=columns, label=label).read(
        chunks
    )


def warm() -> None:
    """Compile, or load from the cache, every kernel of this module."""
    read_conllu([b"1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n"], max_line_bytes=64)
