"""Shared by the writers of formats: batches of sentences, lines of numbered words, texts with spans.

Also the error for values that a format cannot represent.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, repeat

import numpy as np

from tagsmith.core.base.arrays import Ids
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.formats.scan.words import WordLines
from tagsmith.core.corpus.labels.chunks import Chunks

#: A byte-order mark. A reader drops one at the start of a file, so a writer doubles one that is content.
BYTE_ORDER_MARK = "\ufeff"

#: Tokens per batch: large compared with the cost of a batch, small in memory.
_BATCH_TOKENS = 20_000

#: The type of a written span for a chunk without a type.
UNTYPED = "Span"

#: In place of a field with labels: the words have heads and relations, in these fields.
TREE = "tree"
TREE_FIELDS = ("head", "deprel")

#: Fields of numbered words that may contain spaces.
_WITH_SPACES = frozenset({"form", "lemma", "misc"})

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


def write_words(corpus: Corpus, lines: WordLines, columns: Sequence[str], label: str) -> Iterator[bytes]:
    """Write the corpus as UTF-8 chunks: attribute columns as the fields `columns`, in order, labels as `label`.

    Trees are written to their own fields. All other fields are `_`. Words are renumbered, even if there is a column
    `id`.
    """
    if len(columns) != len(corpus.columns):
        have = len(corpus.columns)
        raise _misfit(
            f"The corpus has {have} attribute column{'s' * (have != 1)}, but `columns` names {len(columns)}. "
            "Name one field per attribute column.",
            Fault(f"must name {have} field{'s' * (have != 1)}", parameter="columns"),
        )
    texts = {
        name: _field_texts(name, column, lines) for name, column in zip(columns, corpus.columns, strict=True)
    }
    if corpus.trees is not None:
        texts |= _tree_texts(corpus.trees, columns, lines)
    elif corpus.labels is not None:
        if label == TREE:
            raise _misfit(
                "The corpus has labels, not trees. Name the field for the labels.",
                Fault("must be a field: the corpus has labels", parameter="label"),
            )
        texts[label] = _field_texts(label, corpus.labels, lines)
    texts.pop("id", None)
    return _word_chunks(corpus, lines, texts)


def _tree_texts(trees: Trees, columns: Sequence[str], lines: WordLines) -> dict[str, TextColumn]:
    if not set(TREE_FIELDS).isdisjoint(columns):
        raise _misfit(
            "The corpus has trees, which are written to the fields head and deprel. Name other fields.",
            Fault("must not name head or deprel", parameter="columns"),
        )
    head, relation = TREE_FIELDS
    numbers = [str(number) for number in range(int(trees.heads.max(initial=0)) + 1)]
    return {head: (numbers, trees.heads), relation: _field_texts(relation, trees.relations, lines)}


def _misfit(message: str, fault: Fault) -> Invalid:
    return Invalid(message, [fault], code="invalid_options")


def _word_chunks(corpus: Corpus, lines: WordLines, texts: dict[str, TextColumn]) -> Iterator[bytes]:
    weights: Iterator[str] = repeat("")
    if corpus.weights is not None and lines.comments:
        # The shortest decimals that are read back as the same float32.
        written = zip(corpus.weights.tolist(), corpus.weights.astype("U32").tolist(), strict=True)
        weights = ("" if value == 1 else f"# weight = {text}\n" for value, text in written)
    given = [field for field in lines.fields[1:] if field in texts]
    for found, cuts in batches([texts[field] for field in given], corpus.offsets.tolist()):
        by_field = dict(zip(given, found, strict=True))
        numbers = [str(number) for a, b in cuts for number in range(1, b - a + 1)]
        fields = [by_field.get(field, repeat("_")) for field in lines.fields[1:]]
        rows = ["\t".join(row) for row in zip(numbers, *fields, strict=False)]
        yield "".join(
            weight + "\n".join(rows[a:b]) + "\n\n" for (a, b), weight in zip(cuts, weights, strict=False)
        ).encode()


def _field_texts(field: str, column: Column, lines: WordLines) -> TextColumn:
    strings = column.vocabulary.strings()
    least = " " if field in _WITH_SPACES else "!"
    for string in strings:
        if not string or any(c < least or c == "\x7f" for c in string):
            raise unwritable(f"the field {field} of {lines.title}", column.name, string)
    return strings, column.ids
