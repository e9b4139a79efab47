"""`conll`: column text. One token per line, columns separated by blanks, a blank line between sentences.

To read it, one kernel checks and splits whole lines, and a second one assigns ids to the fields.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from tagsmith.core.base.arrays import Bytes, Ids, Places
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
from tagsmith.core.corpus.formats.writing import BYTE_ORDER_MARK, TextColumn, batches, unwritable
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of

#: Real corpora have fewer than 20 columns. The limit stops a line of a million letters from becoming as many columns.
MAX_COLUMNS = 256

#: Marks the start of a document. Such a line is not a token.
_DOCUMENT_START = "-DOCSTART-"
_MARKER_SIZE = len(_DOCUMENT_START)

# Kinds of bytes. An odd byte belongs to its field and causes a second check of the line.
_PLAIN, _ODD, _BLANK, _NEWLINE = range(4)
_KINDS = np.full(256, _ODD, np.uint8)
_KINDS[33:127] = _PLAIN
_KINDS[[9, 32]] = _BLANK
_KINDS[10] = _NEWLINE

# Indices of the state array.
_WIDTH = OWN_STATE  # columns per line, 0 before the first line
_WIDTH_LINE = OWN_STATE + 1  # the line that determined the width
_SENTENCE_START = OWN_STATE + 2  # tokens before the current sentence
_NARROW_SEEN = OWN_STATE + 3  # whether a line with too few columns was reported
_ENDS = OWN_STATE + 4  # sentence ends in this batch
_CELLS = OWN_STATE + 5  # cells in this batch
_STATE_SIZE = OWN_STATE + 6

# Kinds of faults.
_RAGGED, _NARROW, _WIDE = range(OWN_FAULTS, OWN_FAULTS + 3)


@inner
def _is_document_start(buffer: Bytes, start: int) -> bool:
    """Whether a field of ten bytes is -DOCSTART-."""
    marker = (45, 68, 79, 67, 83, 84, 65, 82, 84, 45)
    k = 0
    while k < _MARKER_SIZE and buffer[start + k] == marker[k]:
        k += 1
    return k == _MARKER_SIZE


@inner
def _width_fault(count: int, least: int, most: int, state: Places, faults: Places) -> bool:
    """Check the number of fields of a token line. The first valid line determines the number for all others."""
    if state[_WIDTH] == 0:
        if count < least:
            # Reported once: a file without labels has this fault in every line.
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
    """Read whole lines (the buffer ends with a newline): the spans of the fields, row by row, and sentence ends.

    `limits` is (longest line, fewest columns, most columns). Functions are called only for rare lines: a call in
    every line would be a large part of the time.
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
        elif count == state[_WIDTH] or not _width_fault(count, limits[1], limits[2], state, faults):
            cells += count
            state[TOKENS] += 1
    state[_CELLS] = cells
    state[_ENDS] = sentences


class ConllReader(LineReader):
    """Reads column text. The last column holds the labels, the others are features.

    They are called "0", "1" and so on, or as `names` says. `columns` chooses some of them, by number or name.
    """

    def __init__(
        self,
        *,
        max_line_bytes: int,
        labelled: bool = True,
        names: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=_STATE_SIZE)
        self._labelled = labelled
        self._given_names, self._given_columns = tuple(names), tuple(columns)
        self._chosen: list[
            int
        ] = []  # places of the kept columns, the label last; known from the first line on
        self._names: list[str] = []  # of the features among them
        self._limits = np.array([max_line_bytes, 2 if labelled else 1, MAX_COLUMNS], np.int64)
        self._pool = empty_pool(MAX_COLUMNS)

    def _scan(self, buffer: Bytes) -> None:
        # A field and its separator take at least two bytes, and so does a sentence.
        most = buffer.size // 2 + 1
        starts, stops, ends = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
        _scan(buffer, self._limits, self._state, starts, stops, ends, self._faults)
        width, cells = int(self._state[_WIDTH]), self._state[_CELLS]
        if width and not self._state[FAULTS]:
            if not self._chosen:
                self._choose(width)
            self._pool, ids = intern(self._pool, buffer, starts[:cells], stops[:cells], width)
            columns = [ids[column::width].copy() for column in self._chosen]
            self._keep(columns, ends[: self._state[_ENDS]].copy())

    def _choose(self, width: int) -> None:
        """Find the columns to keep in lines of `width` columns."""
        features = width - self._labelled
        names = self._given_names[:features] or [str(number) for number in range(features)]
        if self._given_names and len(self._given_names) not in (features, width):
            raise _misfit(
                "names", f"{len(self._given_names)} names for {_columns(features)} before the label"
            )
        places = [_place(each, self._given_names) for each in self._given_columns]
        for place in places:
            if place >= features:
                reason = "is the label" if place < width else "does not exist"
                raise _misfit(
                    "columns", f"column {place} {reason}; the features are columns 0 to {features - 1}"
                )
        self._chosen = places or list(range(features))
        # Without names of their own they are numbered anew: templates refer to columns by their place.
        self._names = [names[place] if self._given_names else str(i) for i, place in enumerate(self._chosen)]
        self._chosen += [width - 1] if self._labelled else []

    def _corpus(self) -> Corpus:
        columns = [
            Column(name, vocabulary_of(self._pool, place), self._ids(number))
            for number, (name, place) in enumerate(zip([*self._names, "label"], self._chosen, strict=False))
        ]
        offsets = self._offsets()
        if not self._labelled:
            return Corpus(tuple(columns), None, offsets)
        return Corpus(tuple(columns[:-1]), columns[-1], offsets)

    def _reason(self, kind: int, a: int, b: int) -> str:
        if kind == _RAGGED:
            width, line = int(self._state[_WIDTH]), int(self._state[_WIDTH_LINE])
            return f"expected {_columns(width)} as in line {line}, found {a}"
        if kind == _NARROW:
            return f"{_columns(a)}; a labelled corpus needs at least {b}, with the label in the last one"
        return f"{a} columns; the limit is {b}"


def _place(column: str, names: Sequence[str]) -> int:
    """Return the number of a column, given by its number or its name."""
    return names.index(column) if column in names else int(column)


def _misfit(parameter: str, reason: str) -> Invalid:
    """Return the error for an option that does not fit the columns of the text."""
    message = "The options do not fit the columns of the text. Correct or remove them."
    return Invalid(message, [Fault(reason, parameter=parameter)], code="invalid_options")


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def read_conll(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """Read a corpus from `chunks`, which may end anywhere."""
    return ConllReader(max_line_bytes=max_line_bytes, labelled=labelled).read(chunks)


def write_conll(
    corpus: Corpus, labels: Ids | None = None, label_names: Sequence[str] | None = None
) -> Iterator[bytes]:
    """Write the corpus as UTF-8 chunks: the attribute columns, then the labels if there are any.

    `labels` replaces the labels of the corpus. They are ids into `label_names`, or by default into the label
    vocabulary of the corpus.
    """
    columns = [_text_column(column) for column in corpus.columns]
    if labels is not None:
        columns.append((_label_strings(corpus, labels, label_names), labels))
    elif corpus.labels is not None:
        columns.append(_text_column(corpus.labels))
    return _chunks(columns, corpus.offsets.tolist())


def _chunks(columns: list[TextColumn], bounds: list[int]) -> Iterator[bytes]:
    if bounds[-1] and columns[0][0][columns[0][1][0]].startswith(BYTE_ORDER_MARK):
        # A reader drops the first mark of a file.
        yield BYTE_ORDER_MARK.encode()
    for cells, cuts in batches(columns, bounds):
        rows = [" ".join(row) for row in zip(*cells, strict=True)]
        yield "".join("\n".join(rows[a:b]) + "\n\n" for a, b in cuts).encode()


def _text_column(column: Column) -> TextColumn:
    return _checked(column.name, column.vocabulary.strings()), column.ids


def _label_strings(corpus: Corpus, labels: Ids, names: Sequence[str] | None) -> list[str]:
    if names is None:
        if corpus.labels is None:
            raise ValueError("the corpus has no label vocabulary, so label names are needed")
        names = corpus.labels.vocabulary.strings()
    if labels.shape != (corpus.tokens,):
        raise ValueError(f"{labels.size} labels for {corpus.tokens} tokens")
    if labels.size and not 0 <= int(np.min(labels)) <= int(np.max(labels)) < len(names):
        raise ValueError("an id is not one of the labels")
    return _checked("label", list(names))


def _checked(column: str, strings: list[str]) -> list[str]:
    """Reject values that could not be read back: empty values, blanks, control characters, document marks."""
    for string in strings:
        if not string or string == _DOCUMENT_START or any(c <= " " or c == "\x7f" for c in string):
            raise unwritable("column text", column, string)
    return strings


def warm() -> None:
    """Compile the kernels of this module and of `intern`, or load them from the cache."""
    read_conll([b"a b\n\n-DOCSTART- x\n\xc3\xa4 b\n"], max_line_bytes=64)


#: Names that templates and derived columns can refer to. A number would be taken for the place of a column.
_NAME = re.compile(r"(?![0-9]+$)[A-Za-z0-9_.-]{1,64}")


class ConllOptions(Options):
    """Names of the columns, and which of them are features."""

    names: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=(),
        description="Names of the columns of the text, in order. That of the label may be left out. By default columns "
        "are numbered from 0.",
    )
    columns: Annotated[tuple[str, ...], BeforeValidator(split_names)] = Field(
        default=(),
        description="The columns that are features, in this order: numbers from 0, or names. By default all but the "
        "label.",
    )

    @field_validator("names")
    @classmethod
    def _check_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for index, name in enumerate(names):
            if not _NAME.fullmatch(name):
                raise option_error(
                    f"{name!r} is not a name: use letters, digits, '_', '.' and '-', not a number"
                )
            if name in names[:index]:
                raise option_error(f"{name!r} occurs twice")
        return names

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        names = info.data.get("names", ())
        for index, column in enumerate(columns):
            if column not in names and not re.fullmatch(r"[0-9]{1,3}", column):
                known = (
                    f"the names are {', '.join(names)}" if names else "give names to the columns with names="
                )
                raise option_error(f"{column!r} is neither a number nor a name of a column; {known}")
            if _place(column, names) in [_place(each, names) for each in columns[:index]]:
                raise option_error(f"column {column!r} occurs twice")
        return columns


def _reader(options: ConllOptions, limits: Limits) -> ConllReader:
    return ConllReader(
        max_line_bytes=limits.max_line_bytes,
        labelled=options.labelled,
        names=options.names,
        columns=options.columns,
    )


def _writer(corpus: Corpus, _: ConllOptions) -> Iterator[bytes]:
    return write_conll(corpus)


FORMAT = Format(
    name="conll",
    options=ConllOptions,
    reader=_reader,
    writer=_writer,
    warm=warm,
    reading_options=frozenset({"names", "columns"}),
    order=1,
)
