"""How to use a trained model: the tokenizer for its texts, and an example from the training corpus."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.text.fit import suitable
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.model.use.usage import Usage

#: Sentences to choose the example from, and its preferred length in tokens.
_CANDIDATES = 1000
_SHORTEST, _LONGEST = 5, 30
#: Sentences to try as text.
_TRIES = 20
#: Characters of an example. The tokens beyond are left out.
_MAX_CHARACTERS = 2000

#: Punctuation without a blank before it, and after it.
_NO_BLANK_BEFORE = frozenset(".,;:!?)]}%»”…")
_NO_BLANK_AFTER = frozenset("([{¿¡«“$€£#")
_QUOTES = frozenset("\"'")


@dataclass(frozen=True, slots=True)
class ModelUse:
    """How to use the models of a corpus, and what to warn of."""

    usage: Usage
    warnings: tuple[str, ...]


def usage_of(corpus: Corpus, columns: int, *, calibrated: bool) -> ModelUse:
    """Return how to use a model that reads the first `columns` columns of the corpus."""
    names = tuple(column.name for column in corpus.columns[:columns])
    examples = (_sentence(corpus, columns, number) for number in _candidates(corpus, columns))
    if columns != 1:
        return ModelUse(Usage(columns=names, example=next(examples, ()), calibrated=calibrated), ())
    fit = suitable(corpus)
    first: tuple[str, ...] = ()
    text = None
    for example in examples:
        text = joined(example, fit.tokenizer)
        first = first if first and text is None else example
        if text is not None:
            break
    warning = fit.warning()
    usage = Usage(fit.tokenizer, names, first, text, calibrated)
    return ModelUse(usage, () if warning is None else (warning,))


def _candidates(corpus: Corpus, columns: int) -> list[int]:
    """Return the sentences to try as example: those with the most labels or relations, of a usual length, first."""
    lengths = np.diff(corpus.offsets[: _CANDIDATES + 1])
    labels = corpus.labels if corpus.trees is None else corpus.trees.relations
    if labels is None or (columns == 0 and corpus.bag is None):
        return []
    kinds = np.array(
        [
            len(np.unique(labels.ids[begin : begin + length]))
            for begin, length in zip(corpus.offsets[: lengths.size].tolist(), lengths.tolist(), strict=True)
        ],
        np.int64,
    )
    usual = (lengths >= _SHORTEST) & (lengths <= _LONGEST)
    order = np.lexsort((-kinds, ~usual))
    tried: list[int] = order[lengths[order] > 0][:_TRIES].tolist()
    return tried


def _sentence(corpus: Corpus, columns: int, number: int) -> tuple[Any, ...]:
    """Return the tokens of a sentence as a request has them, as many as fit."""
    begin = int(corpus.offsets[number])
    end = min(int(corpus.offsets[number + 1]), begin + _LONGEST)
    tokens = _objects(corpus, begin, end) if columns == 0 else _rows(corpus, columns, begin, end)
    size, kept = 0, []
    for token in tokens:
        size += len(repr(token))
        if size > _MAX_CHARACTERS:
            break
        kept.append(token)
    return tuple(kept)


def _rows(corpus: Corpus, columns: int, begin: int, end: int) -> list[Any]:
    strings = [
        [column.vocabulary[i] for i in column.ids[begin:end].tolist()] for column in corpus.columns[:columns]
    ]
    return strings[0] if columns == 1 else [list(row) for row in zip(*strings, strict=True)]


def _objects(corpus: Corpus, begin: int, end: int) -> list[Any]:
    """Return tokens as objects of named attributes."""
    assert corpus.bag is not None
    cells, names = corpus.bag.cells, corpus.bag.vocabulary
    bounds = cells.starts[begin : end + 1].tolist()
    values = cells.values if cells.values.size else np.ones(cells.ids.size, np.float32)
    return [
        {names[i]: value for i, value in zip(cells.ids[a:b].tolist(), values[a:b].tolist(), strict=True)}
        for a, b in pairwise(bounds)
    ]


def joined(tokens: Sequence[str], tokenizer: Tokenizer) -> str | None:
    """Return a text that the tokenizer splits into these tokens, with blanks as usual; None if there is none."""
    candidates = [_as_written(tokens, tokenizer), " ".join(tokens)]
    if tokenizer.kind == "characters":
        candidates = ["".join(tokens)]
    for text in candidates:
        if text and tokenizer.split(text).strings(text) == list(tokens):
            return text
    return None


def _as_written(tokens: Sequence[str], tokenizer: Tokenizer) -> str:
    """Join tokens with blanks, except beside punctuation. Every second straight quote closes."""
    text, tight, quoted = "", True, Counter[str]()
    for token in tokens:
        closes = token in _QUOTES and quoted[token] % 2 == 1
        beside = token in _NO_BLANK_BEFORE or token in tokenizer.clitics or closes
        text += token if tight or beside else f" {token}"
        quoted[token] += token in _QUOTES
        tight = token in _NO_BLANK_AFTER or (token in _QUOTES and not closes)
    return text
