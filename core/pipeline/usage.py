"""How to use a trained model: the tokenizer for its texts, and an example from the training corpus."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.text.fit import suitable
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.model.usage import Usage

#: Sentences to choose the example from, and its preferred length in tokens.
_CANDIDATES = 1000
_SHORTEST, _LONGEST = 5, 30
#: Characters of an example. A longer one is left out.
_MAX_CHARACTERS = 2000

#: Punctuation without a blank before it, and after it.
_NO_BLANK_BEFORE = frozenset(".,;:!?)]}%»”…")
_NO_BLANK_AFTER = frozenset("([{¿¡«“$€£#")


@dataclass(frozen=True, slots=True)
class ModelUse:
    """How to use the models of a corpus, and what to warn of."""

    usage: Usage
    warnings: tuple[str, ...]


def usage_of(corpus: Corpus, columns: int, *, calibrated: bool) -> ModelUse:
    """Return how to use a model that reads the first `columns` columns of the corpus."""
    names = tuple(column.name for column in corpus.columns[:columns])
    rows = _example(corpus, columns)
    if columns != 1:
        return ModelUse(Usage(columns=names, example=rows, calibrated=calibrated), ())
    fit = suitable(corpus)
    text = joined(list(rows), fit.tokenizer)
    warning = fit.warning()
    usage = Usage(fit.tokenizer, names, rows, text, calibrated)
    return ModelUse(usage, () if warning is None else (warning,))


def _example(corpus: Corpus, columns: int) -> tuple[Any, ...]:
    """Return the sentence among the first ones with the most kinds of labels, if possible neither short nor long."""
    lengths = np.diff(corpus.offsets[: _CANDIDATES + 1])
    if corpus.labels is None or not lengths.size or (columns == 0 and corpus.bag is None):
        return ()
    kinds = np.array(
        [
            len(np.unique(corpus.labels.ids[begin : begin + length]))
            for begin, length in zip(corpus.offsets[: lengths.size].tolist(), lengths.tolist(), strict=True)
        ]
    )
    fits = (lengths >= _SHORTEST) & (lengths <= _LONGEST)
    chosen = int(np.argmax(np.where(fits, kinds + 1_000_000, np.where(lengths <= _LONGEST, kinds, -1))))
    begin, end = corpus.offsets[chosen : chosen + 2].tolist()
    if columns == 0:
        return tuple(_objects(corpus, begin, end))
    strings = [
        [column.vocabulary[i] for i in column.ids[begin:end].tolist()] for column in corpus.columns[:columns]
    ]
    tokens = strings[0] if columns == 1 else [list(row) for row in zip(*strings, strict=True)]
    return tuple(tokens) if end - begin <= _LONGEST and len(repr(tokens)) <= _MAX_CHARACTERS else ()


def _objects(corpus: Corpus, begin: int, end: int) -> Iterator[dict[str, float]]:
    """Yield the tokens as objects of named attributes, as many as fit."""
    assert corpus.bag is not None
    cells, names = corpus.bag.cells, corpus.bag.vocabulary
    size = 0
    for token in range(begin, end):
        places = range(int(cells.starts[token]), int(cells.starts[token + 1]))
        values = {
            names[int(cells.ids[i])]: float(cells.values[i]) if cells.values.size else 1.0 for i in places
        }
        size += len(repr(values))
        if size > _MAX_CHARACTERS:
            return
        yield values


def joined(tokens: list[str], tokenizer: Tokenizer) -> str | None:
    """Return a text that the tokenizer splits into these tokens, with blanks as usual; None if there is none."""
    usual = ""
    for before, token in zip(["", *tokens], tokens, strict=False):
        tight = (
            not before or token in _NO_BLANK_BEFORE or before in _NO_BLANK_AFTER or token in tokenizer.clitics
        )
        usual += token if tight else f" {token}"
    plain = " ".join(tokens)
    candidates = ["".join(tokens)] if tokenizer.kind == "characters" else [usual, plain]
    for text in candidates:
        if text and tokenizer.split(text).strings(text) == tokens:
            return text
    return None
