"""Raw text to tag: splits it into lines and tokens, and joins tagged characters into words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tagsmith.core.corpus.labels.segmentation import words_of
from tagsmith.core.corpus.tokenizer import TokenRule, tokenize

#: `characters` is for models that segment text into words.
Tokenizer = TokenRule | Literal["characters"]


@dataclass(frozen=True, slots=True)
class TextLine:
    """The tokens of a line, with the start and stop offset of each in its text."""

    text: int
    tokens: list[str]
    starts: list[int]
    stops: list[int]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, with the start and stop offset of each."""

    words: list[str]
    offsets: list[tuple[int, int]]


def lines_of(texts: Sequence[str], tokenizer: Tokenizer) -> list[TextLine]:
    """Split texts into lines. Each line is a sentence to tag. Every text has at least one line."""
    lines: list[TextLine] = []
    for number, text in enumerate(texts):
        if tokenizer == "characters":
            lines += _characters(number, text)
        else:
            lines += _tokens(number, text, tokenizer)
    return lines


def _characters(number: int, text: str) -> Iterator[TextLine]:
    """Yield the lines of a text. Every character except whitespace is a token."""
    begin = 0
    for raw in text.split("\n"):
        places = [begin + i for i, character in enumerate(raw) if not character.isspace()]
        yield TextLine(number, [text[place] for place in places], places, [place + 1 for place in places])
        begin += len(raw) + 1


def _tokens(number: int, text: str, tokenizer: TokenRule) -> Iterator[TextLine]:
    """Yield the lines of a text that have tokens, or one empty line if none has."""
    found = tokenize(text, tokenizer)
    starts, stops = found.starts.tolist(), found.stops.tolist()
    tokens = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
    first = 0
    for last in found.ends.tolist() or [0]:
        yield TextLine(number, tokens[first:last], starts[first:last], stops[first:last])
        first = last


def words_in(texts: Sequence[str], lines: Sequence[TextLine], tags: Sequence[Sequence[str]]) -> list[Words]:
    """Return the words of each text whose tokens are characters. Whitespace always ends a word."""
    made = [Words([], []) for _ in texts]
    for line, labels in zip(lines, tags, strict=True):
        for word in words_of(labels):
            start = word.start
            for at in range(word.start + 1, word.stop + 1):
                if at == word.stop or line.starts[at] != line.stops[at - 1]:
                    begin, end = line.starts[start], line.stops[at - 1]
                    made[line.text].words.append(texts[line.text][begin:end])
                    made[line.text].offsets.append((begin, end))
                    start = at
    return made
