"""Raw text to tag: the tokens of its lines, and the words that tags make of characters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from core.corpus.segmentation import words_of
from core.corpus.tokens import Tokens, tokens_of

#: `characters` are for models that cut text into words.
Tokenizer = Tokens | Literal["characters"]


@dataclass(frozen=True, slots=True)
class Line:
    """The tokens of a line, and where in its text each starts and stops."""

    text: int
    tokens: list[str]
    starts: list[int]
    stops: list[int]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, and where each starts and stops in it."""

    words: list[str]
    offsets: list[tuple[int, int]]


def lines_of(texts: Sequence[str], tokenizer: Tokenizer) -> list[Line]:
    """Cut texts into lines, each a sentence to tag. Every text has at least one."""
    lines: list[Line] = []
    for number, text in enumerate(texts):
        if tokenizer == "characters":
            lines += _characters(number, text)
        else:
            lines += _tokens(number, text, tokenizer)
    return lines


def _characters(number: int, text: str) -> Iterator[Line]:
    """Every character is a token, but blanks."""
    begin = 0
    for raw in text.split("\n"):
        places = [begin + i for i, character in enumerate(raw) if not character.isspace()]
        yield Line(number, [text[place] for place in places], places, [place + 1 for place in places])
        begin += len(raw) + 1


def _tokens(number: int, text: str, tokenizer: Tokens) -> Iterator[Line]:
    """Lines without tokens are left out, unless there is no other."""
    found = tokens_of(text, tokenizer)
    starts, stops = found.starts.tolist(), found.stops.tolist()
    tokens = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
    first = 0
    for last in found.ends.tolist() or [0]:
        yield Line(number, tokens[first:last], starts[first:last], stops[first:last])
        first = last


def words_in(texts: Sequence[str], lines: Sequence[Line], tags: Sequence[Sequence[str]]) -> list[Words]:
    """The words of each text, whose tokens are characters. No word goes on behind a blank."""
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
