"""The signature of a model: its labels, what its tokens are, and an example of a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tagsmith.core.corpus.labels.chunks import codes_chunks
from tagsmith.core.features.resolve import restored
from tagsmith.core.features.resolved import Structure
from tagsmith.core.model.use.usage import Usage
from tagsmith.core.model.use.words import joins_words

#: Examples for models that have none of their own.
_TEXT, _CHARACTERS = "Ada Lovelace wrote to Charles Babbage in London.", "共同创造美好的新世纪"
_WORD, _VALUE = "London", "-"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model takes and what it gives."""

    labels: list[str]  # of a parser, the relations
    #: Whether it gives tags, each for itself or in a chain, or trees.
    structure: Structure
    #: The columns of a token; empty if tokens have named attributes.
    columns: list[str]
    #: Whether it tags text.
    text: bool
    #: What splits text into tokens; None unless it tags text.
    tokenizer: dict[str, Any] | None
    #: The body of a tagging request, without the model.
    example: dict[str, Any]


def signature_of(header: Mapping[str, Any]) -> Signature:
    """Return the signature of the model whose file has this header."""
    labels = [str(label) for label in header["labels"]]
    features = restored(header["features"])
    columns = features.columns
    usage = Usage.of(header.get("usage", {}))
    named = usage.columns if len(usage.columns) == columns else map(str, range(columns))
    tokenizer = usage.tokenizer_for(None, labels) if columns == 1 else None
    characters = tokenizer is not None and joins_words(tokenizer, labels)
    if tokenizer is not None and (usage.text is not None or not usage.example):
        example: dict[str, Any] = {"text": usage.text or (_CHARACTERS if characters else _TEXT)}
    else:
        example = {"sentences": [list(usage.example) or [_token(columns)]]}
    if features.structure == "tree":
        labels = labels[1:]
    elif not characters and codes_chunks(labels):
        example["output"] = "spans"
    record = None if tokenizer is None else tokenizer.record()
    return Signature(labels, features.structure, list(named), columns == 1, record, example)


def _token(columns: int) -> Any:
    return {"word": _WORD} if columns == 0 else [_WORD, *[_VALUE] * (columns - 1)]
