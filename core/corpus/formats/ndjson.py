"""`ndjson`: JSON lines. One sequence per line, `{"tokens": [...], "tags": [...]}`; `labels` and `ner_tags` are accepted
for `tags`. `weight` is how much the sequence counts in training. Other fields are ignored.

A token is a string, a list of strings (its columns), or an object of named attributes (see
`tagsmith.core.corpus.attributes`). All tokens of a corpus are of the same kind.

Trees are written as `heads` and `relations`, which the reader ignores.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.corpus import attributes
from tagsmith.core.corpus.attributes import (
    AttributeCollector,
    DuplicateNameError,
    InvalidAttribute,
    count_members,
    object_of,
)
from tagsmith.core.corpus.bag import Bag, Cells, joined
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.formats.base import Format, Limits, Options
from tagsmith.core.corpus.formats.conll import MAX_COLUMNS
from tagsmith.core.corpus.formats.json_lines import InvalidLine, JsonLineReader
from tagsmith.core.corpus.formats.lines import FAULTS, LINE, TOKENS
from tagsmith.core.corpus.formats.recognition import Head
from tagsmith.core.corpus.formats.writing import sentence_ranges
from tagsmith.core.corpus.intern import empty_pool, intern, vocabulary_of
from tagsmith.core.corpus.labels import partial as partial_labels
from tagsmith.core.corpus.vocabulary import pack
from tagsmith.core.corpus.weights import WEIGHT_REASON, is_weight, joined_weights

#: Names of the field that holds the labels. The last one is that of data sets of Hugging Face.
LABEL_FIELDS = ("tags", "labels", "ner_tags")


class NdjsonReader(JsonLineReader):
    """Reads JSON lines. Strings and lists become columns; objects become bags of attributes."""

    shape = '{"tokens": [...], "tags": [...]}'

    def __init__(self, *, max_line_bytes: int, labelled: bool = True, partial: bool = False) -> None:
        super().__init__(max_line_bytes=max_line_bytes)
        self._labelled = labelled
        self._partial = partial
        self._width: int | None = None  # columns per token, 0 for objects; None before the first token
        self._kind: type = str  # type of every token
        self._names, self._labels = empty_pool(MAX_COLUMNS), empty_pool(1)
        self._cells: list[Cells] = []
        self._weights: list[NDArray[np.float64]] = []
        self._batch = _Batch()

    def _add(self, given: dict[str, Any]) -> None:
        batch, tokens = self._batch, given.get("tokens")
        if not isinstance(tokens, list) or not tokens:
            other = "; a text with spans is of the format spans" if "text" in given else ""
            raise InvalidLine(f"must be a list of at least one token{other}", "tokens")
        field = _label_field(given)
        labels: list[str] = []
        if self._labelled:
            labels = self._labels_of(given.get(field), len(tokens), field)
            batch.weights.append(_weight_of(given))
        self._tokens(tokens, batch.attributes, batch.columns)
        batch.labels += labels
        batch.lengths.append(len(tokens))
        checked = ("tokens", field) if self._labelled else ("tokens",)
        batch.members += len(given) + sum(members_of(given[name]) for name in given if name not in checked)

    def _labels_of(self, given: Any, tokens: int, field: str) -> list[str]:
        """Check the labels of a line. With partial labels, null and lists become strings."""
        if self._partial and isinstance(given, list):
            given = [_partial_label(label, field, number) for number, label in enumerate(given)]
        _check_labels(given, tokens, field)
        labels: list[str] = given
        return labels

    def _end_batch(self, lines: bytes, before: int) -> None:
        batch, self._batch = self._batch, _Batch()
        if not self._state[FAULTS] and batch.members + batch.attributes.members != count_members(lines):
            self._report_duplicate_name(lines, before)
        if not self._state[FAULTS] and batch.lengths:
            ends = int(self._state[TOKENS]) + np.cumsum(batch.lengths)
            self._state[TOKENS] = ends[-1]
            self._store(batch.attributes, batch.columns, batch.labels, ends)
            self._weights.append(np.array(batch.weights, np.float64))

    def _corpus(self) -> Corpus:
        labels = None
        if self._labelled:
            labels = Column("label", vocabulary_of(self._labels, 0), self._ids(len(self._blocks) - 1))
        weights, bag = joined_weights(self._weights) if self._labelled else None, None
        if self._width == 0:
            bag = Bag(vocabulary_of(self._names, 0), joined(self._cells))
        columns = tuple(
            Column(str(i), vocabulary_of(self._names, i), self._ids(i)) for i in range(self._width or 0)
        )
        return Corpus(columns, labels, self._offsets(), bag, weights=weights)

    def _tokens(self, tokens: list[Any], collector: AttributeCollector, columns: list[str]) -> None:
        if self._width is None:
            self._width, self._kind = _width(tokens[0]), type(tokens[0])
        if self._kind is dict:
            _check_each(
                tokens, lambda token: isinstance(token, dict), "must be an object, as the first token is"
            )
            try:
                collector.add_all(tokens)
            except InvalidAttribute as error:
                raise InvalidLine(error.reason, "tokens", *error.path) from None
        elif self._kind is str:
            _check_each(
                tokens, lambda token: isinstance(token, str), "must be a string, as the first token is"
            )
            columns += tokens
        else:
            reason = f"must be a list of {self._width} strings, as the first token is"
            _check_each(tokens, self._is_row, reason)
            for token in tokens:
                columns += token

    def _is_row(self, token: Any) -> bool:
        return (
            isinstance(token, list)
            and len(token) == self._width
            and all(isinstance(column, str) for column in token)
        )

    def _store(
        self, collector: AttributeCollector, columns: list[str], labels: list[str], ends: Places
    ) -> None:
        kept: list[Ids] = []
        if collector.ends:
            self._names, ids = intern(self._names, *collector.spans(), 1)
            self._cells.append(collector.cells(ids))
        if columns:
            width = self._width or 1
            self._names, ids = intern(self._names, *pack(columns), width)
            kept += [ids[column::width].copy() for column in range(width)]
        if self._labelled:
            self._labels, gold = intern(self._labels, *pack(labels), 1)
            kept.append(gold)
        self._keep(kept, ends)

    def _report_duplicate_name(self, lines: bytes, before: int) -> None:
        """Report the first line with an object that has a name twice: orjson silently keeps the last value."""
        for number, line in enumerate(lines.split(b"\n"), start=before + 1):
            try:
                json.loads(line.strip() or b"null", object_pairs_hook=object_of)
            except (DuplicateNameError, RecursionError) as error:
                self._state[LINE] = number
                self._fault("nested too deeply" if isinstance(error, RecursionError) else str(error))
                return


@dataclass(eq=False, slots=True)
class _Batch:
    """The sequences of some lines."""

    attributes: AttributeCollector = field(default_factory=AttributeCollector)
    columns: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    members: int = 0  # of all objects except tokens


def members_of(value: Any) -> int:
    """Return the number of members of all objects in a value, to compare with `count_members` of the JSON text."""
    count, stack = 0, [value]
    while stack:  # not recursive: a text can be nested more deeply than calls of Python
        item = stack.pop()
        if isinstance(item, dict):
            count += len(item)
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return count


def _width(token: Any) -> int:
    """Return the number of columns of the first token. All others must have the same number."""
    if isinstance(token, dict):
        return 0
    if isinstance(token, str):
        return 1
    if not isinstance(token, list):
        raise InvalidLine("must be a string, a list of strings or an object", "tokens", 0)
    if not 0 < len(token) <= MAX_COLUMNS:
        raise InvalidLine(f"must have 1 to {MAX_COLUMNS} columns", "tokens", 0)
    return len(token)


def _check_each(tokens: list[Any], is_valid: Callable[[Any], bool], reason: str) -> None:
    for number, token in enumerate(tokens):
        if not is_valid(token):
            raise InvalidLine(reason, "tokens", number)


def _label_field(sequence: dict[str, Any]) -> str:
    """Return the name of the field with the labels; by default the first one."""
    given = [name for name in LABEL_FIELDS if name in sequence]
    if given[:2] == ["tags", "labels"]:
        raise InvalidLine("give tags or labels, not both", "labels")
    return given[0] if given else LABEL_FIELDS[0]


def _check_labels(labels: Any, tokens: int, field: str) -> None:
    if not isinstance(labels, list) or len(labels) != tokens:
        found = f"{len(labels)} for {tokens} tokens" if isinstance(labels, list) else "none given"
        raise InvalidLine(f"must be a list with one label per token; {found}", field)
    for number, label in enumerate(labels):
        if type(label) is int:
            reason = "must be the name of a class, not its number; replace the numbers by names"
            raise InvalidLine(reason, field, number)
        if not isinstance(label, str) or not label:
            hint = "; to leave labels open, set partial=true" if label is None or type(label) is list else ""
            raise InvalidLine(f"must be a non-empty string{hint}", field, number)


def _partial_label(label: Any, field: str, number: int) -> Any:
    """Return the string of a label that is null or a list of labels, and any other value as it is."""
    if label is None:
        return partial_labels.ANY
    if not isinstance(label, list):
        return label
    if not label or not all(isinstance(each, str) and each for each in label):
        raise InvalidLine("must be a list of at least one label, each a non-empty string", field, number)
    return partial_labels.SEPARATOR.join(label)


def _weight_of(given: dict[str, Any]) -> float:
    weight = given.get("weight", 1.0)
    if not is_weight(weight):
        raise InvalidLine(WEIGHT_REASON, "weight")
    return float(weight)


def read_ndjson(
    chunks: Iterable[bytes], *, max_line_bytes: int, labelled: bool = True, partial: bool = False
) -> Corpus:
    """Read a corpus from `chunks`, which may end anywhere."""
    return NdjsonReader(max_line_bytes=max_line_bytes, labelled=labelled, partial=partial).read(chunks)


def write_ndjson(
    corpus: Corpus, *, label_field: str = "labels", others: Sequence[Mapping[str, Any]] = ()
) -> Iterator[bytes]:
    """Write one sequence per line: tokens as strings, lists of columns or objects; labels or trees if there are any.

    `others` has further fields for each line, which the reader ignores.
    """
    labels: list[Any] = corpus.labels.vocabulary.strings() if corpus.labels else []
    if corpus.partial:
        labels = [_written_label(label) for label in labels]
    if corpus.bag is not None:
        names = [corpus.bag.vocabulary.strings()]
    else:
        names = [column.vocabulary.strings() for column in corpus.columns]
    trees, bounds = corpus.trees, corpus.offsets.tolist()
    relation_names = [] if trees is None else trees.relations.vocabulary.strings()
    for first, last in sentence_ranges(bounds):
        begin, end = bounds[first], bounds[last]
        tokens = _written_tokens(corpus, names, begin, end)
        gold = [] if corpus.labels is None else [labels[i] for i in corpus.labels.ids[begin:end].tolist()]
        lines = []
        for number, (start, stop) in enumerate(pairwise(bounds[first : last + 1]), start=first):
            sentence = slice(start - begin, stop - begin)
            line: dict[str, Any] = {"tokens": tokens[sentence]}
            if corpus.labels is not None:
                line[label_field] = gold[sentence]
            if trees is not None:
                heads, relations = trees.heads[begin:end], trees.relations.ids[begin:end]
                line["heads"] = heads[sentence].tolist()
                line["relations"] = [relation_names[i] for i in relations[sentence].tolist()]
            if corpus.weights is not None and corpus.weights[number] != 1:
                line["weight"] = _shortest(corpus.weights[number : number + 1])[0]
            lines.append(orjson.dumps({**line, **others[number]} if others else line) + b"\n")
        yield b"".join(lines)


def _written_tokens(corpus: Corpus, names: Sequence[list[str]], begin: int, end: int) -> list[object]:
    if corpus.bag is None:
        cells = [
            [strings[i] for i in column.ids[begin:end].tolist()]
            for strings, column in zip(names, corpus.columns, strict=True)
        ]
        return list(cells[0]) if len(cells) == 1 else [list(row) for row in zip(*cells, strict=True)]
    part = corpus.bag.cells.part(begin, end)
    values = part.values if part.values.size else np.ones(part.ids.size, np.float32)
    numbers = _shortest(values)
    ids, starts = part.ids.tolist(), part.starts.tolist()
    tokens: list[object] = []
    for t in range(part.tokens):
        token: dict[str, float] = {}
        for k in range(starts[t], starts[t + 1]):
            # A name occurs once in an object: the values of an attribute given twice are added.
            name = names[0][ids[k]]
            token[name] = token.get(name, 0.0) + numbers[k]
        tokens.append(token)
    return tokens


def _shortest(values: NDArray[np.float32]) -> list[float]:
    """Return the shortest decimals that are read back as the same float32."""
    return [float(text) for text in values.astype("U32").tolist()]


def _written_label(label: str) -> str | list[str] | None:
    """Return a partial label as JSON."""
    if partial_labels.is_single(label):
        return label
    return list(partial_labels.alternatives(label)) or None


class NdjsonOptions(Options):
    """JSON lines have no options of their own."""


def _reader(options: NdjsonOptions, limits: Limits) -> NdjsonReader:
    return NdjsonReader(
        max_line_bytes=limits.max_line_bytes, labelled=options.labelled, partial=options.partial
    )


def _writer(corpus: Corpus, _: NdjsonOptions) -> Iterator[bytes]:
    return write_ndjson(corpus)


def _recognises(head: Head) -> bool:
    """JSON objects with tokens. Those with a text and without labels are of `spans`."""
    fields = head.json_fields
    return "tokens" in fields and ("text" not in fields or bool(fields & {*LABEL_FIELDS}))


FORMAT = Format(
    name="ndjson",
    options=NdjsonOptions,
    reader=_reader,
    writer=_writer,
    media_type="application/x-ndjson",
    holds_bags=True,
    holds_trees=True,
    warm=attributes.warm,
    recognises=_recognises,
    order=3,
)
