"""Raw text for models that cut it into words: characters to tag, and the words that tags make of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.corpus.segmentation import words_of


@dataclass(frozen=True, slots=True)
class Line:
    """The characters of a line that are not blank, and where in its text each stands."""

    text: int
    characters: list[str]
    places: list[int]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, and where each starts and stops in it."""

    words: list[str]
    offsets: list[tuple[int, int]]


def lines_of(texts: Sequence[str]) -> list[Line]:
    """Cut texts into lines, each a sentence to tag. Every text has at least one."""
    lines = []
    for number, text in enumerate(texts):
        begin = 0
        for raw in text.split("\n"):
            places = [begin + i for i, character in enumerate(raw) if not character.isspace()]
            lines.append(Line(number, [text[place] for place in places], places))
            begin += len(raw) + 1
    return lines


def words_in(texts: Sequence[str], lines: Sequence[Line], tags: Sequence[Sequence[str]]) -> list[Words]:
    """The words of each text. No word goes on behind a blank."""
    made = [Words([], []) for _ in texts]
    for line, labels in zip(lines, tags, strict=True):
        for word in words_of(labels):
            start = word.start
            for at in range(word.start + 1, word.stop + 1):
                if at == word.stop or line.places[at] != line.places[at - 1] + 1:
                    begin, end = line.places[start], line.places[at - 1] + 1
                    made[line.text].words.append(texts[line.text][begin:end])
                    made[line.text].offsets.append((begin, end))
                    start = at
    return made


def joined(lines: Sequence[Line], tags: Sequence[Sequence[str]], texts: int) -> list[list[str]]:
    """The tags of each text: those of its lines, one after the other."""
    made: list[list[str]] = [[] for _ in range(texts)]
    for line, labels in zip(lines, tags, strict=True):
        made[line.text] += labels
    return made
