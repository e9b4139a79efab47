"""Read JSON lines: a sequence a line, `{"tokens": [...], "labels": [...]}`.

A token is a string, a list of strings (its columns), or an object of named attributes (see `named`); in one corpus all
tokens are of one kind.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import orjson

from core.corpus.arrays import Bytes, Ids, Places
from core.corpus.bag import Bag, Cells, joined
from core.corpus.conll import MAX_COLUMNS
from core.corpus.corpus import Column, Corpus
from core.corpus.intern import empty_pool, intern, vocabulary_of
from core.corpus.lines import FAULTS, LINE, MAX_FAULTS, OWN_FAULTS, OWN_STATE, TOKENS, LineReader, record
from core.corpus.named import Gathered, TwiceError, WrongAttribute, members, once
from core.corpus.vocabulary import pack
from core.specs_base import pointer

_FIELDS = {"tokens", "labels"}


class _Wrong(Exception):
    """What is wrong with a line, and where in it."""

    def __init__(self, reason: str, *path: str | int) -> None:
        super().__init__(f"{pointer(path)}: {reason}" if path else reason)


class NdjsonReader(LineReader):
    """Feed it chunks of bytes, then `finish()` gives the corpus. Raises `Invalid` with the faulty lines."""

    def __init__(self, *, max_line_bytes: int, labelled: bool = True) -> None:
        super().__init__(max_line_bytes=max_line_bytes, state_size=OWN_STATE)
        self._labelled = labelled
        self._said_of: list[str] = []  # what a fault says, by its first number
        self._width: int | None = None  # columns of a token, 0 when tokens are objects; None until the first
        self._kind: type = str  # of every token
        self._names, self._labels = empty_pool(MAX_COLUMNS), empty_pool(1)
        self._cells: list[Cells] = []

    def _scan(self, buffer: Bytes) -> None:
        lines = buffer.tobytes()
        gathered, columns, labels = Gathered(), list[str](), list[str]()
        lengths: list[int] = []
        before, fields = int(self._state[LINE]), 0
        for line in lines.split(b"\n")[:-1]:
            self._state[LINE] += 1
            if line.strip():
                try:
                    sequence = self._sequence(line)
                    self._tokens(sequence["tokens"], gathered, columns)
                except _Wrong as error:
                    self._fault(str(error))
                    if self._state[FAULTS] == MAX_FAULTS:
                        return
                    continue
                labels += sequence.get("labels", ())
                lengths.append(len(sequence["tokens"]))
                fields += len(sequence)
        if not self._state[FAULTS] and fields + gathered.fields != members(lines):
            self._twice(lines, before)
        if not self._state[FAULTS] and lengths:
            ends = int(self._state[TOKENS]) + np.cumsum(lengths)
            self._state[TOKENS] = ends[-1]
            self._store(gathered, columns, labels, ends)

    def _corpus(self) -> Corpus:
        labels = None
        if self._labelled:
            labels = Column("label", vocabulary_of(self._labels, 0), self._ids(len(self._blocks) - 1))
        if self._width == 0:
            return Corpus(
                (), labels, self._offsets(), Bag(vocabulary_of(self._names, 0), joined(self._cells))
            )
        columns = tuple(
            Column(str(i), vocabulary_of(self._names, i), self._ids(i)) for i in range(self._width or 0)
        )
        return Corpus(columns, labels, self._offsets())

    def _fault(self, reason: str) -> None:
        record(self._state, self._faults, OWN_FAULTS, len(self._said_of), 0)
        self._said_of.append(reason)

    def _reason(self, kind: int, a: int, b: int) -> str:
        del kind, b
        return self._said_of[a]

    def _sequence(self, line: bytes) -> dict[str, Any]:
        """Read a line, and check it but for what the tokens are made of."""
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
            raise _Wrong("no such field; a sequence has tokens and labels", unknown[0])
        tokens = sequence.get("tokens")
        if not isinstance(tokens, list) or not tokens:
            raise _Wrong("must be a list of at least one token", "tokens")
        if self._labelled:
            _check_labels(sequence.get("labels"), len(tokens))
        return sequence

    def _tokens(self, tokens: list[Any], gathered: Gathered, columns: list[str]) -> None:
        if self._width is None:
            self._width, self._kind = _width(tokens[0]), type(tokens[0])
        if self._kind is dict:
            _all(tokens, lambda token: isinstance(token, dict), "must be an object, as the first token is")
            try:
                gathered.add_all(tokens)
            except WrongAttribute as error:
                raise _Wrong(error.reason, "tokens", *error.path) from None
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

    def _store(self, gathered: Gathered, columns: list[str], labels: list[str], ends: Places) -> None:
        kept: list[Ids] = []
        if gathered.ends:
            self._names, ids = intern(self._names, *gathered.spans(), 1)
            self._cells.append(gathered.cells(ids))
        if columns:
            width = self._width or 1
            self._names, ids = intern(self._names, *pack(columns), width)
            kept += [ids[column::width].copy() for column in range(width)]
        if self._labelled:
            self._labels, gold = intern(self._labels, *pack(labels), 1)
            kept.append(gold)
        self._keep(kept, ends)

    def _twice(self, lines: bytes, before: int) -> None:
        """Note the first line whose objects have a name twice: what reads JSON fast keeps the last without a word."""
        for number, line in enumerate(lines.split(b"\n"), start=before + 1):
            try:
                json.loads(line.strip() or b"null", object_pairs_hook=once)
            except TwiceError as error:
                self._state[LINE] = number
                self._fault(str(error))
                return


def _width(token: Any) -> int:
    """Columns of the first token, which all others must have."""
    if isinstance(token, dict):
        return 0
    if isinstance(token, str):
        return 1
    if not isinstance(token, list):
        raise _Wrong("must be a string, a list of strings or an object", "tokens", 0)
    if not 0 < len(token) <= MAX_COLUMNS:
        raise _Wrong(f"a token has 1 to {MAX_COLUMNS} columns", "tokens", 0)
    return len(token)


def _all(tokens: list[Any], good: Callable[[Any], bool], otherwise: str) -> None:
    for number, token in enumerate(tokens):
        if not good(token):
            raise _Wrong(otherwise, "tokens", number)


def _check_labels(labels: Any, tokens: int) -> None:
    if not isinstance(labels, list) or len(labels) != tokens:
        found = f"{len(labels)} for {tokens} tokens" if isinstance(labels, list) else "there is none"
        raise _Wrong(f"must be a list with a label for each token; {found}", "labels")
    for number, label in enumerate(labels):
        if not isinstance(label, str) or not label:
            raise _Wrong("a label is a string, and not empty", "labels", number)


def read_ndjson(chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    return NdjsonReader(max_line_bytes=max_line_bytes, labelled=labelled).read(chunks)
