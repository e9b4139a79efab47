"""Shared by the writers of formats: batches of sentences, and the error for values that cannot be written."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tagsmith.core.base.arrays import Ids
from tagsmith.core.base.errors import Fault, Invalid

#: A byte-order mark. A reader drops one at the start of a file, so a writer doubles one that is content.
BYTE_ORDER_MARK = "\ufeff"

#: Tokens per batch: large compared with the cost of a batch, small in memory.
_BATCH_TOKENS = 20_000

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
