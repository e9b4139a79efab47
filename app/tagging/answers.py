"""What the responses of taggers and parsers share: their type, the limits, tokens of texts, column text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from tagsmith.app.tagging.source import Source, refused
from tagsmith.core.base.errors import Fault, FaultType, Invalid, TooLarge
from tagsmith.core.model.tagger import Tagger
from tagsmith.wire import TagRequest

#: Memory to decode one sentence. A sentence of a million tokens with 24 labels takes 100 MB.
MAX_SCRATCH_BYTES = 512 << 20
#: Memory to parse one sentence, which grows with the square of its length: some 1,000 words. Every thread can take it
#: for a body of a few kilobytes.
MAX_PARSING_BYTES = 128 << 20
#: Maximum number of explained tokens per response. Each explanation is a page of names and numbers.
MAX_EXPLAINED = 1_000

#: Tokens that are tagged and written at once. Reading strings and writing JSON hold the GIL: some 5 ms for so many.
PART_TOKENS = 1 << 16

_BLANK = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Amount:
    """The number of tagged sentences and tokens."""

    sentences: int = 0
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.sentences + other.sentences, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request, and the amount of tagged input."""

    told: dict[str, Any]
    amount: Amount


def check_scratch(tagger: Tagger, longest: int, *, posterior: bool = False) -> None:
    """Raise TooLarge if a sentence is too long for a parser, or for the number of labels of a tagger."""
    limit = MAX_PARSING_BYTES if tagger.is_parser else MAX_SCRATCH_BYTES
    if tagger.scratch_bytes(longest, posterior=posterior) > limit:
        labels = f" with {len(tagger.labels):,} labels" * (not tagger.is_parser)
        reason = (
            f"{'Parsing' if tagger.is_parser else 'Tagging'} {longest:,} tokens{labels} takes more than "
            f"{limit >> 20} MiB. Send shorter sentences."
        )
        raise TooLarge(
            "A sentence is too long.", [Fault(reason, pointer="/sentences")], code="too_many_tokens"
        )


def explained_tokens(request: TagRequest, bounds: list[int]) -> list[tuple[int, int]]:
    """Return the tokens to explain, as (entry, token index in the entry)."""
    if request.explain is False:
        return []
    count = bounds[-1] if request.explain is True else len(request.explain)
    if count > MAX_EXPLAINED:
        fault = Fault(
            f"There are {count:,} tokens to explain. Explain at most {MAX_EXPLAINED:,} per request.",
            pointer="/explain",
        )
        raise TooLarge("The request is too large.", [fault], code="too_many_tokens")
    lengths = [end - begin for begin, end in pairwise(bounds)]
    if request.explain is True:
        return [(i, token) for i, length in enumerate(lengths) for token in range(length)]
    for number, (i, token) in enumerate(request.explain):
        if not (0 <= i < len(lengths) and 0 <= token < lengths[i]):
            reason = f"There is no token {token} in sentence {i}. Both count from 0."
            raise refused(reason, f"/explain/{number}", FaultType.OUT_OF_RANGE)
    return request.explain


def tokens_of_texts(source: Source, bounds: Sequence[int]) -> dict[str, Any]:
    """Return the tokens of each text, their offsets, and its sentences."""
    places = [place for each in source.sentences for place in zip(each.starts, each.stops, strict=True)]
    return {
        "tokens": source.tokens(bounds),
        "offsets": cut(places, bounds),
        "sentences": source.sentence_ranges(),
    }


def cut(values: Sequence[Any] | NDArray[Any], bounds: Sequence[int]) -> list[Any]:
    """Split the values of all tokens into those of each entry."""
    return [values[begin:end] for begin, end in pairwise(bounds)]


def column_text(sentences: Sequence[Sequence[Any]], ends: Sequence[Sequence[str]], name: str) -> str:
    """Format sentences as column text. Raise Invalid for a token that it cannot hold.

    `ends` has what follows the columns of each token.
    """
    lines: list[str] = []
    for i, (sentence, own) in enumerate(zip(sentences, ends, strict=True)):
        for j, (token, end) in enumerate(zip(sentence, own, strict=True)):
            columns = [token] if isinstance(token, str) else [] if isinstance(token, dict) else token
            if not columns or any(not column or _BLANK.search(column) for column in columns):
                raise unwritable("conll", f"/{name}/{i}/{j}")
            lines.append("\t".join([*columns, end]))
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""


def unwritable(output: str, pointer: str) -> Invalid:
    """Make the error for a token that a text output cannot hold."""
    fault = Fault("empty, with a blank or without columns, which column text cannot hold", pointer=pointer)
    return Invalid(f"A token cannot be written as {output}.", [fault], code="unwritable_token")


def parts_of(sentences: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the sentences in parts of about `PART_TOKENS` tokens, at least one part."""
    first = size = 0
    for i, sentence in enumerate(sentences, start=1):
        size += len(sentence)
        if size >= PART_TOKENS:
            yield sentences[first:i]
            first, size = i, 0
    if first < len(sentences) or not sentences:
        yield sentences[first:] if first else sentences
