"""Write a corpus as column text, the inverse of reading it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from core.corpus.arrays import Ids
from core.corpus.corpus import Column, Corpus
from core.errors import Fault, Invalid

#: Tokens turned into text at a time.
_CHUNK_TOKENS = 20_000

_BYTE_ORDER_MARK = "\ufeff"

Cells = tuple[list[str], Ids]  # the strings that a column can hold, and which of them each token has


def write_conll(
    corpus: Corpus, labels: Ids | None = None, label_names: Sequence[str] | None = None
) -> Iterator[bytes]:
    """The corpus as UTF-8 chunks: attribute columns, then a label if there is one.

    `labels` take the place of the corpus's own; they are ids in `label_names`, or without those in the corpus's
    own label vocabulary.
    """
    columns = [(_strings(column), column.ids) for column in corpus.columns]
    if labels is not None:
        columns.append((_label_strings(corpus, labels, label_names), labels))
    elif corpus.labels is not None:
        columns.append((_strings(corpus.labels), corpus.labels.ids))
    return _chunks(columns, corpus.offsets.tolist())


def _chunks(columns: list[Cells], bounds: list[int]) -> Iterator[bytes]:
    if bounds[-1] and columns[0][0][columns[0][1][0]].startswith(_BYTE_ORDER_MARK):
        # A reader takes the first mark for the file's.
        yield _BYTE_ORDER_MARK.encode()
    for cells, cuts in batches(columns, bounds):
        rows = [" ".join(row) for row in zip(*cells, strict=True)]
        yield "".join("\n".join(rows[a:b]) + "\n\n" for a, b in cuts).encode()


def batches(
    columns: Sequence[Cells], bounds: list[int]
) -> Iterator[tuple[list[list[str]], list[tuple[int, int]]]]:
    """Some sentences at a time: (by column, the strings of their tokens; where each sentence lies in these)."""
    first = 0
    while first < len(bounds) - 1:
        last = first + 1
        while last < len(bounds) - 1 and bounds[last] - bounds[first] < _CHUNK_TOKENS:
            last += 1
        begin, end = bounds[first], bounds[last]
        cells = [[strings[i] for i in ids[begin:end].tolist()] for strings, ids in columns]
        yield cells, [(a - begin, b - begin) for a, b in pairwise(bounds[first : last + 1])]
        first = last


def _strings(column: Column) -> list[str]:
    return _checked(column.name, column.vocabulary.strings())


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
    """Refuse what could not be read back: empty values, blanks, control characters, document marks."""
    for string in strings:
        if not string or string == "-DOCSTART-" or any(c <= " " or c == "\x7f" for c in string):
            raise unwritable("column text", column, string)
    return strings


def unwritable(what: str, column: str, string: str) -> Invalid:
    """The error for a value that a format has no way to say."""
    return Invalid(
        f"The corpus has a value that {what} cannot hold.",
        [Fault(f"column {column}: {string!r}")],
        code="unwritable_value",
    )
