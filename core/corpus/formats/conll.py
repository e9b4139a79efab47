"""`conll`: column text. One token per line, columns separated by blanks, a blank line between sentences.

To read it, one kernel checks and splits whole lines (see `scan.columns`), and a second one assigns ids to the fields.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from tagsmith.core.base.arrays import Bytes, Ids
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options, option_error, split_names
from tagsmith.core.corpus.formats.lines import FAULTS, LineReader
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.scan.columns import (
    BLANK_KINDS,
    CELLS,
    DOCUMENT_START,
    ENDS,
    EXPECTED,
    NARROW,
    RAGGED,
    STATE_SIZE,
    TAB_KINDS,
    WIDTH,
    WIDTH_LINE,
    scan,
)
from tagsmith.core.corpus.formats.writing import BYTE_ORDER_MARK, TextColumn, batches, unwritable
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of

#: Real corpora have fewer than 20 columns. The limit stops a line of a million letters from becoming as many columns.
MAX_COLUMNS = 256

#: The beginning of a comment.
_COMMENT = re.compile(rb"#[ \t]")
#: Blank lines, comments and beginnings of documents. A file can have millions of them before its first token.
_NO_TOKENS = re.compile(rb"(?:[ \t\r]*\n|#[ \t][^\n]*\n|-DOCSTART-(?:[ \t\r][^\n]*)?\n)*+")


class ConllReader(LineReader):
    """Reads column text. The last column holds the labels, the others are features.

    They are called "0", "1" and so on, or as `names` says. `columns` chooses some of them, by number or name. With
    `tabs`, only tabs separate columns.
    """

    def __init__(
        self,
        *,
        max_line_bytes: int,
        labelled: bool = True,
        names: Sequence[str] = (),
        columns: Sequence[str] = (),
        tabs: bool = False,
    ) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=STATE_SIZE)
        self._separator = b"\t" if tabs else None  # as `bytes.split` takes it
        self._kinds = TAB_KINDS if tabs else BLANK_KINDS
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
        if not self._state[WIDTH]:
            self._state[EXPECTED] = self._first_width(buffer.tobytes())
        scan(buffer, self._kinds, self._limits, self._state, starts, stops, ends, self._faults)
        width, cells = int(self._state[WIDTH]), self._state[CELLS]
        if width and not self._state[FAULTS]:
            if not self._chosen:
                self._choose(width)
            self._pool, ids = intern(self._pool, buffer, starts[:cells], stops[:cells], width)
            columns = [ids[column::width].copy() for column in self._chosen]
            self._keep(columns, ends[: self._state[ENDS]].copy())

    def _first_width(self, lines: bytes) -> int:
        """Return the number of columns of the first token line; 0 if all lines are blank.

        Lines that begin like comments are tokens if there are no others.
        """
        lines = lines.lstrip()
        skipped = _NO_TOKENS.match(lines)
        assert skipped is not None
        first = lines[skipped.end() :] or lines[lines.find(b"#") :]
        return len([field for field in first.partition(b"\n")[0].split(self._separator) if field])

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
        if kind == RAGGED:
            width, line = int(self._state[WIDTH]), int(self._state[WIDTH_LINE])
            return f"expected {_columns(width)} as in line {line}, found {a}"
        if kind == NARROW:
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
    corpus: Corpus,
    labels: Ids | None = None,
    label_names: Sequence[str] | None = None,
    *,
    tabs: bool = False,
) -> Iterator[bytes]:
    """Write the corpus as UTF-8 chunks: the attribute columns, then the labels if there are any.

    `labels` replaces the labels of the corpus. They are ids into `label_names`, or by default into the label
    vocabulary of the corpus. With `tabs`, columns are separated by tabs, and values may contain blanks.
    """
    columns = [(column.name, column.vocabulary.strings(), column.ids) for column in corpus.columns]
    if labels is not None:
        columns.append(("label", _label_strings(corpus, labels, label_names), labels))
    elif corpus.labels is not None:
        columns.append((corpus.labels.name, corpus.labels.vocabulary.strings(), corpus.labels.ids))
    checked = [(_checked(name, strings, tabs=tabs), ids) for name, strings, ids in columns]
    return _chunks(checked, corpus.offsets.tolist(), "\t" if tabs else " ")


def _chunks(columns: list[TextColumn], bounds: list[int], separator: str) -> Iterator[bytes]:
    if bounds[-1] and columns[0][0][columns[0][1][0]].startswith(BYTE_ORDER_MARK):
        # A reader drops the first mark of a file.
        yield BYTE_ORDER_MARK.encode()
    for cells, cuts in batches(columns, bounds):
        rows = [separator.join(row) for row in zip(*cells, strict=True)]
        yield "".join("\n".join(rows[a:b]) + "\n\n" for a, b in cuts).encode()


def _label_strings(corpus: Corpus, labels: Ids, names: Sequence[str] | None) -> list[str]:
    if names is None:
        if corpus.labels is None:
            raise ValueError("the corpus has no label vocabulary, so label names are needed")
        names = corpus.labels.vocabulary.strings()
    if labels.shape != (corpus.tokens,):
        raise ValueError(f"{labels.size} labels for {corpus.tokens} tokens")
    if labels.size and not 0 <= int(np.min(labels)) <= int(np.max(labels)) < len(names):
        raise ValueError("an id is not one of the labels")
    return list(names)


def _checked(column: str, strings: list[str], *, tabs: bool) -> list[str]:
    """Reject values that could not be read back: empty values, blanks, control characters, document marks."""
    least = " " if tabs else "!"
    for string in strings:
        if not string or string == DOCUMENT_START or any(c < least or c == "\x7f" for c in string):
            raise unwritable("column text", column, string)
    return strings


def warm() -> None:
    """Compile the kernels of this module and of `intern`, or load them from the cache."""
    read_conll([b"a b\n\n-DOCSTART- x\n\xc3\xa4 b\n"], max_line_bytes=64)


Separator = Literal["auto", "blank", "tab"]

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

    separator: Separator = Field(
        default="auto",
        description="What separates columns: `blank` (spaces and tabs), `tab` (only tabs, so that values may contain "
        "spaces), or `auto`: `tab` if the lines differ in words but not in the number of cells between tabs.",
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
        tabs=options.separator == "tab",
    )


def _writer(corpus: Corpus, options: ConllOptions) -> Iterator[bytes]:
    return write_conll(corpus, tabs=options.separator == "tab")


def _resolve(options: ConllOptions, head: Head) -> ConllOptions:
    """Choose the separator of `auto`. Cells with blanks have different numbers of words, but as many tabs per line."""
    if options.separator != "auto":
        return options
    rows = [line for line in head.filled if not _COMMENT.match(line.encode())]
    words = {len(line.split()) for line in rows}
    cells = {len(line.split("\t")) for line in rows}
    tabs = len(words) > 1 and len(cells) == 1 and cells.isdisjoint({1})
    return options.model_copy(update={"separator": "tab" if tabs else "blank"})


FORMAT = Format(
    name="conll",
    options=ConllOptions,
    reader=_reader,
    writer=_writer,
    warm=warm,
    resolve=_resolve,
    reading_options=frozenset({"names", "columns"}),
    order=1,
)
