"""Read JSON lines: a sequence a line, `{"tokens": [...], "labels": [...]}`.

A token is a string, a list of strings (its columns), or an object of named attributes (see `named`); in one corpus all
tokens are of one kind.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import orjson

from core.corpus.arrays import Ids, Places
from core.corpus.bag import Bag, Cells
from core.corpus.conll import MAX_COLUMNS
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.corpus.lines import Batch, Lines
from core.corpus.named import Gathered, TwiceError, WrongAttribute, members, once
from core.corpus.reading import MAX_FAULTS, no_tokens, unreadable
from core.corpus.vocabulary import pack
from core.errors import Fault
from core.specs_base import pointer

_FIELDS = {"tokens", "labels"}


class _Wrong(Exception):
    """What is wrong with a line, and where in it."""

    def __init__(self, reason: str, path: tuple[str | int, ...] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.pointer = None if path is None else pointer(path)


class NdjsonReader:
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines."""

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        self._labelled = labelled
        self._max_line_bytes = max_line_bytes
        self._lines = Lines(max_line_bytes)
        self._line = 0
        self._faults: list[Fault] = []
        self._width: int | None = None  # columns of a token, 0 when tokens are objects; None until the first
        self._kind: type = str  # of every token
        self._names, self._labels = empty_pool(MAX_COLUMNS), empty_pool(1)
        self._lengths: list[int] = []
        self._cells: list[Cells] = []
        self._ids: list[Ids] = []  # rows of columns, one after the other
        self._gold: list[Ids] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises as soon as `MAX_FAULTS` faults are found."""
        for batch in self._lines.feed(chunk):
            self._take(batch)

    def finish(self) -> Corpus:
        """The corpus of all that was fed."""
        self._take(self._lines.finish())
        if self._faults:
            raise unreadable(self._faults)
        if self._width is None:
            raise no_tokens()
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._lengths)])
        labels = None
        if self._labelled:
            labels = Column("label", vocabulary_of(self._labels, 0), np.concatenate(self._gold))
        if self._width == 0:
            return Corpus((), labels, offsets, Bag(vocabulary_of(self._names, 0), _joined(self._cells)))
        ids = np.concatenate(self._ids).reshape(-1, self._width)
        columns = (
            Column(str(i), vocabulary_of(self._names, i), ids[:, i].copy()) for i in range(self._width)
        )
        return Corpus(tuple(columns), labels, offsets)

    def _take(self, batch: Batch) -> None:
        gathered, columns, labels = Gathered(), list[str](), list[str]()
        before, fields = self._line, 0
        for line in batch.lines.split(b"\n")[:-1]:
            self._line += 1
            if line.strip():
                try:
                    fields += self._read(line, gathered, columns, labels)
                except _Wrong as error:
                    self._fault(error.reason, error.pointer)
        if batch.then_long:
            self._line += 1
            self._fault(f"longer than {self._max_line_bytes} bytes")
        if self._faults:
            # No corpus will come of this; further lines are read for their faults only.
            return
        if fields + gathered.fields != members(batch.lines):
            raise unreadable([_twice(batch.lines, before)])
        self._keep(gathered, columns, labels)

    def _fault(self, reason: str, pointer: str | None = None) -> None:
        self._faults.append(Fault(reason, line=self._line, pointer=pointer))
        if len(self._faults) >= MAX_FAULTS:
            raise unreadable(self._faults)

    def _read(self, line: bytes, gathered: Gathered, columns: list[str], labels: list[str]) -> int:
        """Take a line apart; returns how many members its outer object has."""
        if len(line) > self._max_line_bytes:
            raise _Wrong(f"longer than {self._max_line_bytes} bytes")
        try:
            sequence = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise _Wrong(f"not JSON: {error.msg} at byte {error.pos + 1}") from None
        if not isinstance(sequence, dict):
            raise _Wrong('must be an object {"tokens": [...], "labels": [...]}')
        unknown = sorted(sequence.keys() - _FIELDS)
        if unknown:
            raise _Wrong("no such field; a sequence has tokens and labels", (unknown[0],))
        tokens = sequence.get("tokens")
        if not isinstance(tokens, list) or not tokens:
            raise _Wrong("must be a list of at least one token", ("tokens",))
        if self._labelled:
            labels += _checked_labels(sequence.get("labels"), len(tokens))
        self._tokens(tokens, gathered, columns)
        self._lengths.append(len(tokens))
        return len(sequence)

    def _tokens(self, tokens: list[Any], gathered: Gathered, columns: list[str]) -> None:
        if self._width is None:
            self._width, self._kind = _width(tokens[0]), type(tokens[0])
        if self._kind is dict:
            _all(tokens, lambda token: isinstance(token, dict), "must be an object, as the first token is")
            try:
                gathered.add_all(tokens)
            except WrongAttribute as error:
                raise _Wrong(error.reason, ("tokens", *error.path)) from None
        elif self._kind is str:
            _all(tokens, lambda token: isinstance(token, str), "must be a string, as the first token is")
            columns += tokens
        else:
            what = f"must be a list of {self._width} strings, as the first token is"
            _all(tokens, self._is_row, what)
            for token in tokens:
                columns += token

    def _is_row(self, token: Any) -> bool:
        return (
            isinstance(token, list)
            and len(token) == self._width
            and all(isinstance(column, str) for column in token)
        )

    def _keep(self, gathered: Gathered, columns: list[str], labels: list[str]) -> None:
        if labels:
            self._labels, gold = intern(self._labels, *pack(labels), 1)
            self._gold.append(gold)
        if gathered.ends:
            self._names, ids = intern(self._names, *gathered.spans(), 1)
            self._cells.append(gathered.cells(ids))
        if columns:
            self._names, ids = intern(self._names, *pack(columns), self._width or 1)
            self._ids.append(ids)


def _width(token: Any) -> int:
    """Columns of the first token, which all others must have."""
    if isinstance(token, dict):
        return 0
    if isinstance(token, str):
        return 1
    if not isinstance(token, list):
        raise _Wrong("must be a string, a list of strings or an object", ("tokens", 0))
    if not 0 < len(token) <= MAX_COLUMNS:
        raise _Wrong(f"a token has 1 to {MAX_COLUMNS} columns", ("tokens", 0))
    return len(token)


def _all(tokens: list[Any], good: Callable[[Any], bool], otherwise: str) -> None:
    for number, token in enumerate(tokens):
        if not good(token):
            raise _Wrong(otherwise, ("tokens", number))


def _checked_labels(labels: Any, tokens: int) -> list[str]:
    if not isinstance(labels, list) or len(labels) != tokens:
        found = f"{len(labels)} for {tokens} tokens" if isinstance(labels, list) else "there is none"
        raise _Wrong(f"must be a list with a label for each token; {found}", ("labels",))
    for number, label in enumerate(labels):
        if not isinstance(label, str) or not label:
            raise _Wrong("a label is a string, and not empty", ("labels", number))
    return labels


def _joined(blocks: list[Cells]) -> Cells:
    starts: list[Places] = [np.zeros(1, np.int64)]
    for block in blocks:
        starts.append(starts[-1][-1] + block.starts[1:])
    weighted = any(block.values.size for block in blocks)
    values = [b.values if b.values.size else np.ones(b.ids.size * weighted, np.float32) for b in blocks]
    return Cells(np.concatenate(starts), np.concatenate([b.ids for b in blocks]), np.concatenate(values))


def _twice(lines: bytes, before: int) -> Fault:
    """The first line with an object that has a name twice; what reads JSON fast keeps the last without a word."""
    for number, line in enumerate(lines.split(b"\n"), start=before + 1):
        try:
            json.loads(line or b"null", object_pairs_hook=once)
        except TwiceError as error:
            return Fault(str(error), line=number)
    raise AssertionError("no line has a name twice")


def read_ndjson(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    reader = NdjsonReader(max_line_bytes=max_line_bytes, labelled=labelled)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()
