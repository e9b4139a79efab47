"""Shared by the writers of formats: batches of sentences, texts with spans, and the error for unwritable values."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from tagsmith.core.base.arrays import Ids
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.labels.chunks import Chunks

#: A byte-order mark. A reader drops one at the start of a file, so a writer doubles one that is content.
BYTE_ORDER_MARK = "\ufeff"

#: Tokens per batch: large compared with the cost of a batch, small in memory.
_BATCH_TOKENS = 20_000

#: The type of a written span for a chunk without a type.
UNTYPED = "Span"

TextColumn = tuple[list[str], Ids]  # the distinct strings of a column, and the index of each token's string


def sentence_ranges(bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Split sentences into ranges `first:last` of at least `_BATCH_TOKENS` tokens; the last may have fewer.

    Sentence i has the tokens `bounds[i]:bounds[i + 1]`.
    """
    first = 0
    while first < len(bounds) - 1:
        last = first + 1
        while last < len(bounds) - 1 and bounds[last] - bounds[first] < _BATCH_TOKENS:
            last += 1
        yield first, last
        first = last


def batches(
    columns: Sequence[TextColumn], bounds: Sequence[int]
) -> Iterator[tuple[list[list[str]], list[tuple[int, int]]]]:
    """Yield batches of sentences: (per column, the string of each token; per sentence, its range of tokens)."""
    for first, last in sentence_ranges(bounds):
        begin, end = bounds[first], bounds[last]
        cells = [[strings[i] for i in ids[begin:end].tolist()] for strings, ids in columns]
        yield cells, [(a - begin, b - begin) for a, b in pairwise(bounds[first : last + 1])]


def unwritable(target: str, column: str, string: str) -> Invalid:
    """Return the error for a value that `target`, such as "column text", cannot represent."""
    return Invalid(
        f"The corpus has a value that {target} cannot hold. Choose another format.",
        [Fault(f"column {column}: {string!r}")],
        code="unwritable_value",
    )


def written_columns(corpus: Corpus, target: str) -> list[TextColumn]:
    """Return the columns from which `written_text` makes texts. `target` names the format in errors."""
    tokens = corpus.columns[0]
    if corpus.labels is None:
        raise Invalid(
            "The corpus has no labels to write as annotations. Label it first.",
            [Fault("The corpus has no labels.")],
            code="not_labelled",
        )
    if corpus.partial:
        raise Invalid(
            f"Labels that are left open cannot be written as {target}. Choose conll, conllu, crfsuite or ndjson.",
            [Fault("The corpus has partial labels.")],
            code="unwritable_value",
        )
    strings = tokens.vocabulary.strings()
    for string in strings:
        if not string or any(c < " " or c == "\x7f" for c in string):
            raise unwritable(f"a text of {target}", tokens.name, string)
    chunks = Chunks.of(corpus.labels.vocabulary.strings(), corpus.labels.ids, corpus.offsets)
    return [
        (strings, tokens.ids),
        # Whether the token begins a chunk, whether it ends one, and the type of the chunk.
        (["", "first"], chunks.first.astype(np.int32)),
        (["", "last"], chunks.last.astype(np.int32)),
        ([name or UNTYPED for name in chunks.type_names], chunks.types.astype(np.int32)),
    ]


def written_text(
    cells: Sequence[list[str]], cuts: Iterable[tuple[int, int]]
) -> tuple[str, list[tuple[int, int, str]]]:
    """Return the text of sentences, one per line, and its spans of characters (start, stop, type)."""
    tokens, firsts, lasts, types = cells
    text = "".join(" ".join(tokens[a:b]) + "\n" for a, b in cuts if b > a)
    # One character follows each token: a space or a newline.
    starts = [0, *accumulate(len(token) + 1 for token in tokens)]
    begin = [index for index, first in enumerate(firsts) if first]
    end = [index for index, last in enumerate(lasts) if last]
    pairs = zip(begin, end, strict=True)
    return text, [(starts[first], starts[last] + len(tokens[last]), types[first]) for first, last in pairs]
