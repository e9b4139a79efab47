r"""`crfsuite`: the data format of CRFsuite. One token per line, `label TAB attribute[:value] TAB ...`.

A blank line ends a sequence. In a name `\:` is a colon and `\\` a backslash. An attribute without a value, or with an
empty one, has the value 1. Fields are separated by tabs only; empty fields are skipped. `@weight:2.5` is the weight of
the sequence; it stands before a label, or alone on a line. Input that CRFsuite silently misreads is a fault here: a
value that is not a number, a second value, a label with a value.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Bytes, Places
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.jit import inlined, inner, kernel, readonly
from tagsmith.core.corpus.bag import MAX_VALUE, Bag, Cells, Values
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options
from tagsmith.core.corpus.formats.decimals import parse_decimal
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
from tagsmith.core.corpus.formats.writing import BYTE_ORDER_MARK, sentence_ranges
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of
from tagsmith.core.corpus.weights import MAX_WEIGHT, MIN_WEIGHT, WEIGHT_REASON, joined_weights

_TAB, _NEWLINE, _RETURN, _SPACE, _COLON, _AT, _BACKSLASH = 9, 10, 13, 32, 58, 64, 92

# Bytes that continue a field. The others end it or need special treatment.
_PLAIN = np.ones(256, np.bool_)
_PLAIN[:32] = False
_PLAIN[[127, _COLON, _BACKSLASH]] = False

# Indices of the state array.
_SEQUENCE_START = OWN_STATE  # tokens before the current sequence
_ATTRIBUTES = OWN_STATE + 1  # attributes in this batch
_BATCH_TOKENS = OWN_STATE + 2  # tokens in this batch
_ENDS = OWN_STATE + 3  # sequence ends in this batch
_STATE_SIZE = OWN_STATE + 4

# Kinds of faults.
_NOT_A_NUMBER, _OUT_OF_RANGE, _SECOND_VALUE, _LABEL_VALUE, _DECLARATION, _NAMELESS, _WEIGHT = range(
    OWN_FAULTS, OWN_FAULTS + 7
)

# What `_line` returns for a line that has no token.
_FAULTY, _CONTROL, _DECLARED = -1, -2, -3

_WEIGHT_NAME = np.frombuffer(b"@weight", np.uint8)


@inlined
def _field(text: Bytes, i: int, bounds: Places, at: int) -> int:
    """Read the name that begins at `text[i]` and unescape it in place; store its bounds in bounds[at:at + 2].

    Returns the index of the character that ends it: a tab, colon, newline or control character.
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
def _skip_blank_rest(text: Bytes, i: int) -> int:
    """Return the end of the line if only blanks precede it, else `i`."""
    j = i
    while text[j] == _SPACE or text[j] == _TAB:
        j += 1
    return j if _ends_line(text, j) else i


@inlined
def _ends_line(text: Bytes, i: int) -> bool:
    return bool(text[i] == _NEWLINE or (text[i] == _RETURN and text[i + 1] == _NEWLINE))


class _Batch(NamedTuple):
    """The content of a batch of lines. `starts` has two spare cells, used for the span of a value."""

    starts: Places  # names of attributes: text[starts[k]:stops[k]]
    stops: Places
    values: NDArray[np.float64]
    label_starts: Places  # labels likewise; one spare cell
    label_stops: Places
    counts: Places  # attributes per token
    ends: Places  # tokens before the end of each sequence
    weights: NDArray[np.float64]  # of each sequence
    weight: NDArray[np.float64]  # (1,) that of the current sequence, which can have begun in an earlier batch


@inner
def _declaration(text: Bytes, i: int, token: int, batch: _Batch, state: Places, faults: Places) -> int:
    """Read the weight of a sequence; return the index where it ends, or -1 if it is invalid."""
    bounds = batch.label_starts  # this line has not read its label yet
    i = _field(text, i, bounds, token)
    if text[i] != _COLON or not _is(text, bounds[token], bounds[token + 1], _WEIGHT_NAME):
        record(state, faults, _DECLARATION, 0, 0)
        return -1
    i = _field(text, i + 1, bounds, token)
    sound = parse_decimal(text, bounds[token], bounds[token + 1], batch.weight, 0)
    if not sound or text[i] == _COLON or not MIN_WEIGHT <= batch.weight[0] <= MAX_WEIGHT:
        record(state, faults, _WEIGHT, 0, 0)
        return -1
    return i


@inlined
def _is(text: Bytes, begin: int, end: int, name: Bytes) -> bool:
    """Whether text[begin:end] is a name."""
    same = end - begin == name.size
    for k in range(name.size if same else 0):
        same &= text[begin + k] == name[k]
    return same


@inlined
def _label(text: Bytes, i: int, token: int, batch: _Batch, state: Places, faults: Places) -> int:
    """Read a label; return the index where it ends, or -1 if it is invalid."""
    i = _field(text, i, batch.label_starts, token)
    batch.label_stops[token] = batch.label_starts[token + 1]
    if text[i] == _COLON:
        record(state, faults, _LABEL_VALUE, 0, 0)
        return -1
    return i


@inlined
def _attribute(
    text: Bytes, i: int, attribute: int, field: int, batch: _Batch, state: Places, faults: Places
) -> int:
    """Read an attribute and its value; return the index where it ends, or -1 if it is invalid."""
    i = _field(text, i, batch.starts, attribute)
    batch.stops[attribute], batch.values[attribute] = batch.starts[attribute + 1], 1.0
    if text[i] != _COLON:
        return i
    i = _field(text, i + 1, batch.starts, attribute + 1)
    begin, end = batch.starts[attribute + 1], batch.starts[attribute + 2]
    fault = 0
    if batch.stops[attribute] == batch.starts[attribute]:
        fault = _NAMELESS
    elif text[i] == _COLON:
        fault = _SECOND_VALUE
    elif end > begin and not parse_decimal(text, begin, end, batch.values, attribute):
        fault = _NOT_A_NUMBER
    elif not abs(batch.values[attribute]) <= MAX_VALUE:
        fault = _OUT_OF_RANGE
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
    batch: _Batch,
    state: Places,
    faults: Places,
) -> tuple[int, int]:
    """Read the fields of a line; return (number of fields, index of the end of the line).

    The number is _DECLARED for a line with a weight only. It is _FAULTY after a fault in a field and _CONTROL at a
    control character; then the index is not the end.
    """
    fields, declared = 0, False
    while True:
        while text[i] == _TAB:
            i += 1
        if fields == 0:
            i = _skip_blank_rest(text, i)
        if _ends_line(text, i):
            return (_DECLARED if declared and fields == 0 else fields), i
        if labelled and fields == 0 and text[i] == _AT:
            i = _declaration(text, i, token, batch, state, faults)
            declared = True
        elif labelled and fields == 0:
            i = _label(text, i, token, batch, state, faults)
            fields = 1
        else:
            number = attribute + fields - labelled
            i = _attribute(text, i, number, fields + 1, batch, state, faults)
            fields += 1
        if i < 0:
            return _FAULTY, i
        if text[i] != _TAB and not _ends_line(text, i):
            return _CONTROL, i


@kernel
def _scan(
    source: Bytes, text: Bytes, labelled: bool, longest: int, state: Places, batch: _Batch, faults: Places
) -> None:
    """Read whole lines (they end with a newline). `text` is a copy of `source` in which names are unescaped."""
    attributes, tokens, sequences, i = 0, 0, 0, 0
    while i < text.size and state[FAULTS] < faults.shape[0]:
        state[LINE] += 1
        begin, sound = i, True
        fields, _ = _line(text, i, labelled, tokens, attributes, batch, state, faults)
        odd = False
        while source[i] != _NEWLINE:
            odd |= source[i] > 126 or source[i] < 32
            i += 1
        if i - begin > longest:
            # Of a line that is too long, no other fault is reported.
            state[FAULTS] -= fields == _FAULTY
            record(state, faults, LONG, longest, 0)
            sound = False
        elif fields == _FAULTY:
            sound = False
        elif odd:
            end = i - 1 if i > begin and source[i - 1] == _RETURN else i
            sound = not byte_fault(source, begin, end, state, faults)
        i += 1
        if not sound or fields == _DECLARED:
            continue
        if fields:
            batch.counts[tokens] = fields - labelled
            attributes += fields - labelled
            tokens += 1
            state[TOKENS] += 1
        elif state[TOKENS] > state[_SEQUENCE_START]:
            batch.ends[sequences], batch.weights[sequences] = state[TOKENS], batch.weight[0]
            sequences += 1
            state[_SEQUENCE_START], batch.weight[0] = state[TOKENS], 1.0
    state[_ATTRIBUTES], state[_BATCH_TOKENS], state[_ENDS] = attributes, tokens, sequences


class CrfsuiteReader(LineReader):
    """Reads CRFsuite's data as bags of attributes. Without labels every field of a line is an attribute."""

    reasons: ClassVar[Mapping[int, str]] = {
        _NOT_A_NUMBER: "field {0}: the value after the colon is not a number; write a colon in a name as \\:",
        _OUT_OF_RANGE: f"field {{0}}: the value is beyond {MAX_VALUE:g}",
        _SECOND_VALUE: "field {0}: a second colon; write a colon in a name as \\:",
        _LABEL_VALUE: "the label has a value; write a colon in a label as \\:",
        _DECLARATION: "a label must not start with @; the only declaration is a weight, such as @weight:2.5",
        _WEIGHT: f"{WEIGHT_REASON}, such as @weight:2.5",
        _NAMELESS: "field {0}: a value without a name",
    }

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=_STATE_SIZE)
        self._labelled = labelled
        self._names, self._labels = empty_pool(1), empty_pool(1)
        self._values: list[Values] = []
        self._counts: list[Places] = []
        self._weight = np.ones(1)
        self._weights: list[NDArray[np.float64]] = []

    def _scan(self, buffer: Bytes) -> None:
        # An attribute and its separator take at least two bytes, and so does a token.
        most = buffer.size // 2 + 3
        starts, stops, label_starts, label_stops, counts, ends = (np.empty(most, np.int64) for _ in range(6))
        values, weights = np.empty(most), np.empty(most)
        batch = _Batch(starts, stops, values, label_starts, label_stops, counts, ends, weights, self._weight)
        text = buffer.copy()
        _scan(buffer, text, self._labelled, self._max_line_bytes, self._state, batch, self._faults)
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
        self._values.append(batch.values[:attributes].astype(np.float32))
        self._counts.append(counts[:tokens].copy())
        self._weights.append(weights[: self._state[_ENDS]].copy())

    def _corpus(self) -> Corpus:
        starts = np.concatenate([np.zeros(1, np.int64), *self._counts]).cumsum()
        cells = Cells.of(starts, self._ids(0), np.concatenate(self._values))
        self._values.clear()
        labels = Column("label", vocabulary_of(self._labels, 0), self._ids(1)) if self._labelled else None
        bag, weights = Bag(vocabulary_of(self._names, 0), cells), joined_weights(self._weights)
        return Corpus((), labels, self._offsets(), bag, weights=weights)


def read_crfsuite(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """Read a corpus from `chunks`, which may end anywhere."""
    return CrfsuiteReader(max_line_bytes=max_line_bytes, labelled=labelled).read(chunks)


_ESCAPED = re.compile(r"[:\\]")
#: Names that CRFsuite's data cannot hold: empty ones, and ones that would end a field or a line.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f]|^$")


def write_crfsuite(corpus: Corpus) -> Iterator[bytes]:
    """Write one token per line: its label, if there is one, and its attributes. Columns become `name=value`."""
    labels = _escaped(corpus.labels.vocabulary.strings(), "label") if corpus.labels else []
    for label in labels:
        if label.startswith("@") or not label.strip(" "):
            raise _unwritable("label", label)
    if corpus.bag is not None:
        names = [_escaped(corpus.bag.vocabulary.strings(), "attribute")]
    else:
        names = [
            _escaped([f"{column.name}={text}" for text in column.vocabulary.strings()], column.name)
            for column in corpus.columns
        ]
    return _chunks(corpus, labels, names)


def _chunks(corpus: Corpus, labels: list[str], names: list[list[str]]) -> Iterator[bytes]:
    if (
        corpus.labels is not None
        and corpus.tokens
        and labels[corpus.labels.ids[0]].startswith(BYTE_ORDER_MARK)
    ):
        # A reader drops the first mark of a file.
        yield BYTE_ORDER_MARK.encode()
    bounds = corpus.offsets.tolist()
    for first, last in sentence_ranges(bounds):
        begin, end = bounds[first], bounds[last]
        rows = _rows(corpus, names, begin, end)
        if corpus.labels is not None:
            gold = corpus.labels.ids[begin:end].tolist()
            rows = [[labels[label], *row] for label, row in zip(gold, rows, strict=True)]
        elif not all(rows):
            raise _unwritable("token", "without a label and without attributes")
        lines = ["\t".join(row) + "\n" for row in rows]
        for weight, at in zip(*_declared(corpus, first, last), strict=True):
            lines[bounds[at] - begin] = f"@weight:{weight}\t{lines[bounds[at] - begin]}"
        cuts = pairwise(bounds[first : last + 1])
        yield "".join("".join(lines[a - begin : b - begin]) + "\n" for a, b in cuts).encode()


def _declared(corpus: Corpus, first: int, last: int) -> tuple[list[str], list[int]]:
    """Return the weights of the sentences `first:last` that are not 1, as they are written, and those sentences."""
    if corpus.weights is None or corpus.labels is None:
        return [], []
    weights = corpus.weights[first:last]
    at = np.flatnonzero(weights != 1)
    return weights[at].astype("U32").tolist(), (first + at).tolist()


def _rows(corpus: Corpus, names: list[list[str]], begin: int, end: int) -> list[list[str]]:
    """Return the attributes of tokens `begin:end` as they are written."""
    if corpus.bag is not None:
        return _bag_rows(corpus.bag.cells.part(begin, end), names[0])
    columns = [
        [strings[i] for i in column.ids[begin:end].tolist()]
        for strings, column in zip(names, corpus.columns, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _bag_rows(cells: Cells, names: list[str]) -> list[list[str]]:
    texts = [names[i] for i in cells.ids.tolist()]
    if cells.values.size:
        values = cells.values.astype("U32").tolist()
        texts = [
            text if value == "1.0" else f"{text}:{value}" for text, value in zip(texts, values, strict=True)
        ]
    return [texts[a:b] for a, b in pairwise(cells.starts.tolist())]


def _escaped(names: list[str], kind: str) -> list[str]:
    for name in names:
        if _UNWRITABLE.search(name):
            raise _unwritable(kind, name)
    return [_ESCAPED.sub(r"\\\g<0>", name) for name in names]


def _unwritable(kind: str, text: str) -> Invalid:
    return Invalid(
        "The corpus has a value that CRFsuite's data cannot hold. Choose another format.",
        [Fault(f"{kind}: {text!r}")],
        code="unwritable_value",
    )


def warm() -> None:
    """Compile the kernels of this module, or load them from the cache."""
    read_crfsuite([b"A\ta\\:b:1.5e0\tc\n\n"], max_line_bytes=64)


class CrfsuiteOptions(Options):
    """CRFsuite's data has no options of its own."""


def _reader(options: CrfsuiteOptions, limits: Limits) -> CrfsuiteReader:
    return CrfsuiteReader(max_line_bytes=limits.max_line_bytes, labelled=options.labelled)


def _writer(corpus: Corpus, _: CrfsuiteOptions) -> Iterator[bytes]:
    return write_crfsuite(corpus)


#: An attribute that is certainly one: `w[0]=the`, `cap:1` or `length:0.5`.
_ATTRIBUTE = re.compile(r"[^=]+=.*|.+:[-+]?[0-9.]+([eE][-+]?[0-9]+)?")


def _recognises(head: Head) -> bool:
    """Lines with tabs, in which most fields after the first are attributes with a name and a value."""
    fields = [field for line in head.filled for field in line.split("\t")[1:] if field]
    return 0 < len(fields) < 2 * sum(bool(_ATTRIBUTE.fullmatch(field)) for field in fields)


FORMAT = Format(
    name="crfsuite",
    options=CrfsuiteOptions,
    reader=_reader,
    writer=_writer,
    holds_bags=True,
    warm=warm,
    recognises=_recognises,
    order=2,
)
