"""Lines of text as sentences of tokens, with the place of each token in its line."""

from collections.abc import Sequence
from itertools import pairwise

from tagsmith.cli.errors import CommandError
from tagsmith.core.corpus.labels.segmentation import is_coding
from tagsmith.core.corpus.tokenizer import tokenize
from tagsmith.core.model.tagger import Tagger

#: First character of a token, and the first after it.
TokenPlace = tuple[int, int]
TOKENIZERS = ("words", "blanks", "characters")


def sentences_of(lines: Sequence[str], tagger: Tagger, tokenizer: str | None) -> list[list[list[TokenPlace]]]:
    """Return the sentences of each line. The tokenizer is the given one, else that of the model."""
    if tagger.columns != 1:
        needs = f"{tagger.columns} columns" if tagger.columns else "named attributes"
        message = f"Tokens of this model have {needs}, so it cannot tag raw text. Give --input columns."
        raise CommandError(message)
    chosen = tokenizer or ("characters" if is_coding(tagger.labels) else "words")
    if chosen not in TOKENIZERS:
        raise CommandError(f'Unknown tokenizer "{chosen}". Known: {", ".join(TOKENIZERS)}.')
    return [_sentences(line, chosen) for line in lines]


def _sentences(line: str, tokenizer: str) -> list[list[TokenPlace]]:
    if tokenizer == "characters":
        return [[(i, i + 1) for i, character in enumerate(line) if not character.isspace()]]
    found = tokenize(line, "blanks" if tokenizer == "blanks" else "words")
    places = list(zip(found.starts.tolist(), found.stops.tolist(), strict=True))
    return [places[first:last] for first, last in pairwise([0, *found.ends.tolist()])]
