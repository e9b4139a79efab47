"""`conllu`: CoNLL-U. Ten tab-separated fields per word; a blank line after each sentence; comments after `#`.

Words are the lines numbered 1, 2, 3 and so on. Lines of multiword tokens (`1-2`) and empty nodes (`8.1`) are checked
and skipped: the words of a multiword token have their own lines, and an empty node is not part of the text.
(https://universaldependencies.org/format.html)
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Annotated, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from tagsmith.core.base.arrays import Bytes, Places
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import inner, kernel
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options, option_error, split_names
from tagsmith.core.corpus.formats.lines import (
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
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.writing import TextColumn, batches, unwritable
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of

#: The fields of a line, in order.
FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_WIDTH = len(FIELDS)

#: Longer numbers are not word numbers, and would overflow.
_MAX_DIGITS = 9

# Indices of the state array.
_WORD = OWN_STATE  # number of the last word of the current sentence, 0 between sentences
_ENDS = OWN_STATE + 1  # sentence ends in this batch
_CELLS = OWN_STATE + 2  # cells in this batch
_STATE_SIZE = OWN_STATE + 3

# Kinds of faults.
_FIELD_COUNT, _NUMBER, _ORDER, _EMPTY = range(OWN_FAULTS, OWN_FAULTS + 4)

# Kinds of lines: a word, a multiword token or an empty node, or neither.
_NEITHER, _IS_WORD, _IS_OTHER = range(3)


@kernel
def _number(buffer: Bytes, start: int, stop: int, found: Places) -> int:
    """Parse the number at `start` into found[0]; return the index after it, or `start` if it is not valid."""
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
    """Return the kind of a line by its first field; for a word its number is in found[0]."""
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
    """Whether there are only spaces and tabs."""
    i = start
    while i < stop and (buffer[i] == 32 or buffer[i] == 9):
        i += 1
    return i == stop


@kernel
def _split(buffer: Bytes, start: int, bounds: Places) -> tuple[int, int]:
    """Return (end of the line, number of tabs) and store where each field begins in `bounds`."""
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
    """Store the spans of the chosen fields of a word."""
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
    """Read whole lines (the buffer ends with a newline): spans of the chosen fields, row by row, and sentence ends.

    `bounds` (fields + 2,) is scratch space: where the fields of a line begin, where the last one ends, and a number.
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
    """Reads the fields `columns` as columns of the same names, and the field `label` as labels."""

    reasons: ClassVar[Mapping[int, str]] = {
        _FIELD_COUNT: "expected {1} tab-separated fields, found {0}",
        _NUMBER: "the first field must be a word number such as 3, a range such as 3-4 or a node such as 3.1",
        _ORDER: "expected word {1}, found {0}",
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
        # The line of a word has at least its tabs, a digit and a newline; an empty line is one byte.
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
    """Read a corpus from `chunks`, which may end anywhere."""
    return ConlluReader(max_line_bytes=max_line_bytes, labelled=labelled, columns=columns, label=label).read(
        chunks
    )


#: Fields that may contain spaces.
_WITH_SPACES = frozenset({"form", "lemma", "misc"})


def write_conllu(corpus: Corpus, columns: Sequence[str], label: str) -> Iterator[bytes]:
    """Write the corpus as UTF-8 chunks: attribute columns as the fields `columns`, in order, labels as `label`.

    All other fields are `_`. Words are renumbered, even if there is a column `id`.
    """
    if len(columns) != len(corpus.columns):
        have = len(corpus.columns)
        raise Invalid(
            f"The corpus has {have} attribute column{'s' * (have != 1)}, but `columns` names {len(columns)}. "
            "Name one field per attribute column.",
            [Fault(f"must name {have} field{'s' * (have != 1)}", parameter="columns")],
            code="invalid_options",
        )
    texts = {name: _text_column(name, column) for name, column in zip(columns, corpus.columns, strict=True)}
    if corpus.labels is not None:
        texts[label] = _text_column(label, corpus.labels)
    texts.pop("id", None)
    return _chunks(texts, corpus.offsets.tolist())


def _chunks(texts: dict[str, TextColumn], bounds: list[int]) -> Iterator[bytes]:
    written = [field for field in FIELDS[1:] if field in texts]
    for found, cuts in batches([texts[field] for field in written], bounds):
        by_field = dict(zip(written, found, strict=True))
        numbers = [str(number) for a, b in cuts for number in range(1, b - a + 1)]
        fields = [by_field.get(field, repeat("_")) for field in FIELDS[1:]]
        rows = ["\t".join(row) for row in zip(numbers, *fields, strict=False)]
        yield "".join("\n".join(rows[a:b]) + "\n\n" for a, b in cuts).encode()


def _text_column(field: str, column: Column) -> TextColumn:
    strings = column.vocabulary.strings()
    least = " " if field in _WITH_SPACES else "!"
    for string in strings:
        if not string or any(c < least or c == "\x7f" for c in string):
            raise unwritable(f"the field {field} of CoNLL-U", column.name, string)
    return strings, column.ids


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    read_conllu([b"1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n"], max_line_bytes=64)


def _check_field(name: str) -> None:
    if name not in FIELDS:
        raise option_error(f"{name!r} is not a field; fields: {', '.join(FIELDS)}")


class ConlluOptions(Options):
    """The fields to read or write, by name."""

    columns: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=("form",),
        description=f"Fields that become columns, in this order: any of {', '.join(FIELDS)}.",
    )
    label: str = Field(
        default="upos",
        validate_default=True,
        description="Field that holds the labels. Must not be one of the columns.",
    )

    @field_validator("columns")
    @classmethod
    def _columns_are_fields(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if columns in ((), ("",)):
            raise option_error("name at least one field")
        for index, name in enumerate(columns):
            _check_field(name)
            if name in columns[:index]:
                raise option_error(f"{name!r} is named twice")
        return columns

    @field_validator("label")
    @classmethod
    def _label_is_another_field(cls, label: str, info: ValidationInfo) -> str:
        _check_field(label)
        if label in info.data.get("columns", ()):
            raise option_error(f"the label {label} must not be one of the columns")
        return label


def _reader(options: ConlluOptions, limits: Limits) -> ConlluReader:
    return ConlluReader(
        max_line_bytes=limits.max_line_bytes,
        labelled=options.labelled,
        columns=options.columns,
        label=options.label,
    )


def _writer(corpus: Corpus, options: ConlluOptions) -> Iterator[bytes]:
    return write_conllu(corpus, options.columns, options.label)


#: The first field of a line: a word, a multiword token or an empty node.
_FIRST_FIELD = re.compile(r"[0-9]+([-.][0-9]+)?")


def _recognises(head: Head) -> bool:
    """Ten fields per line, the first of them a number. One faulty line does not make it another format."""
    rows = [line.split("\t") for line in head.filled if not line.startswith("#")]
    alike = sum(len(row) == len(FIELDS) and bool(_FIRST_FIELD.fullmatch(row[0])) for row in rows)
    return 0 < len(rows) < 2 * alike


FORMAT = Format(
    name="conllu",
    options=ConlluOptions,
    reader=_reader,
    writer=_writer,
    warm=warm,
    recognises=_recognises,
    order=4,
)
