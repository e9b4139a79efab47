"""The tokens of a request, checked, as columns or as bags of attributes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.spec import pointer
from tagsmith.core.corpus.attributes import AttributeCollector, InvalidAttribute
from tagsmith.core.corpus.bag import Cells
from tagsmith.core.corpus.vocabulary import Vocabulary
from tagsmith.core.model.use.usage import Usage, takes

#: At most this many faults are listed in one error.
_MAX_FAULTS = 100
#: Tokens whose types are compared at once, at C speed, which holds the GIL: about a millisecond.
_CHECKED_TOKENS = 1 << 16


def check_lists(sentences: Sequence[Any]) -> None:
    """Raise Invalid if a sentence is a string. It is a sequence too: its letters would be tagged."""
    if isinstance(sentences, str) or any(isinstance(sentence, str) for sentence in sentences):
        raise Invalid(
            "A sentence is a list of tokens, not a string. Use tag_text for text.", code="invalid_request"
        )


def columns_of(
    sentences: Sequence[Sequence[Any]], tokens: list[Any], columns: int, usage: Usage
) -> list[Sequence[str]]:
    """Transpose rows of columns. Plain strings are the only column. `tokens` are those of all sentences."""
    if not tokens:
        return [[]] * columns
    kinds = {kind for part in _parts(tokens) for kind in set(map(type, part))}
    if kinds == {str} and columns == 1:
        return [tokens]
    if str in kinds or dict in kinds or any(min(map(len, part)) < columns for part in _parts(tokens)):
        raise _wrong(sentences, columns, usage)
    return [[token[i] for token in tokens] for i in range(columns)]


def _parts(tokens: list[Any]) -> Iterator[list[Any]]:
    """Yield all tokens in parts."""
    return (tokens[i : i + _CHECKED_TOKENS] for i in range(0, len(tokens), _CHECKED_TOKENS))


def _wrong(sentences: Sequence[Sequence[Any]], columns: int, usage: Usage) -> Invalid:
    """Make the error that lists the tokens with too few columns."""
    faults: list[Fault] = []
    for i, sentence in enumerate(sentences):
        for j, token in enumerate(sentence):
            have = 1 if isinstance(token, str) else 0 if isinstance(token, Mapping) else len(token)
            if len(faults) < _MAX_FAULTS and have < columns:
                reason = f"This token has {have} column{'s' * (have != 1)}; the model needs {columns}."
                faults.append(Fault(reason, pointer=f"/sentences/{i}/{j}"))
    message = "Give all tokens as strings, or all tokens as rows of columns."
    return Invalid(takes(columns, usage) if faults else message, faults, code="mixed_tokens")


def bag_of(tokens: list[Any], offsets: NDArray[np.int64]) -> Callable[[Vocabulary], Cells]:
    """Return a function that looks up the named attributes of tokens in a vocabulary."""
    gathered = AttributeCollector()
    try:
        gathered.add_all(tokens)
    except InvalidAttribute as error:
        raise _wrong_attribute(error, offsets) from None
    return lambda vocabulary: gathered.cells(vocabulary.lookup(*gathered.spans()))


def _wrong_attribute(error: InvalidAttribute, offsets: NDArray[np.int64]) -> Invalid:
    """Make the error that points to the token with the wrong attribute."""
    token = int(error.path[0])
    sentence = int(np.searchsorted(offsets, token, side="right")) - 1
    place = pointer(("sentences", sentence, token - int(offsets[sentence]), *error.path[1:]))
    return Invalid(
        "The tokens do not fit the model.", [Fault(error.reason, pointer=place)], code="invalid_attribute"
    )
