"""Lines of text as sentences of tokens, with the offsets of each token in its line."""

from collections.abc import Sequence
from itertools import pairwise

from tagsmith.cli.errors import CommandError
from tagsmith.core.corpus.text.tokenizer import Tokenizer
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.model.use.text import tokenizer_of

#: First character of a token, and the first after it.
TokenPlace = tuple[int, int]


def sentences_of(lines: Sequence[str], tagger: Tagger, tokenizer: str | None) -> list[list[list[TokenPlace]]]:
    """Return the sentences of each line. The tokenizer is the given one, else that of the model."""
    if tagger.columns != 1:
        needs = f"{tagger.columns} columns" if tagger.columns else "named attributes"
        message = f"Tokens of this model have {needs}, so it cannot tag raw text. Give --input columns."
        raise CommandError(message)
    try:
        chosen = tokenizer_of(tagger, None if tokenizer is None else Tokenizer.of(tokenizer))
    except ValueError as error:
        raise CommandError(f"Unknown tokenizer {tokenizer}. {error}") from None
    return [_sentences(line, chosen) for line in lines]


def _sentences(line: str, tokenizer: Tokenizer) -> list[list[TokenPlace]]:
    found = tokenizer.split(line)
    places = list(zip(found.starts.tolist(), found.stops.tolist(), strict=True))
    return [places[first:last] for first, last in pairwise([0, *(found.ends.tolist() or [0])])]
