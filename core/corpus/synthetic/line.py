"""A sentence in the making: tokens with IOB2 labels, then noise, then text."""

import re
from collections.abc import Sequence

from core.corpus.synthetic.stream import Stream

#: Words, numbers and initials with their full stop stay whole; every other mark stands alone.
_TOKEN = re.compile(r"[A-Z]\.(?=[\s,)-]|$)|\w+(?:['\u2019]\w+)*|\S")

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tokens_of(text: str) -> list[str]:
    """Split text as a tokeniser would."""
    return _TOKEN.findall(text)


def coarse_class(token: str) -> str:
    """What a glance at the characters tells."""
    if token.isdigit():
        return "YEAR" if len(token) == 4 and token[:2] in {"18", "19", "20"} else "NUM"
    if not any(character.isalnum() for character in token):
        return "PUNCT"
    if len(token) == 2 and token[1] == ".":
        return "INIT"
    if any(character.isdigit() for character in token):
        return "MIXED"
    if token.isupper():
        return "UPPER"
    return "CAP" if token[0].isupper() else "LOWER"


class Line:
    """Tokens and labels so far."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.labels: list[str] = []

    def field(self, kind: str, text: str) -> None:
        """Add a labelled span."""
        for number, token in enumerate(tokens_of(text)):
            self.tokens.append(token)
            self.labels.append(("I-" if number else "B-") + kind)

    def plain(self, text: str) -> None:
        """Add tokens outside any span."""
        for token in tokens_of(text):
            self.tokens.append(token)
            self.labels.append("O")

    def spoil(self, stream: Stream, *, typos: float, drops: float) -> None:
        """Misspell a word with probability `typos`; lose a mark outside spans with probability `drops`."""
        kept = [
            number
            for number, (token, label) in enumerate(zip(self.tokens, self.labels, strict=True))
            if label != "O" or token[0].isalnum() or not stream.chance(drops)
        ]
        self.tokens = [
            misspelt(self.tokens[number], stream) if stream.chance(typos) else self.tokens[number]
            for number in kept
        ]
        self.labels = [self.labels[number] for number in kept]

    def change_case(self, stream: Stream, *, lower: float, upper: float) -> None:
        """Write the whole line in one case, as some people do, with these probabilities."""
        if stream.chance(lower):
            self.tokens = [token.lower() for token in self.tokens]
        elif stream.chance(upper):
            self.tokens = [token.upper() for token in self.tokens]

    def conll(self) -> str:
        """Three columns (token, coarse class, label) and the blank line that ends the sentence."""
        rows = [
            f"{token} {coarse_class(token)} {label}\n"
            for token, label in zip(self.tokens, self.labels, strict=True)
        ]
        return "".join(rows) + "\n"


def misspelt(word: str, stream: Stream) -> str:
    """One slip of the finger in a word; numbers, marks and short words stay."""
    if len(word) < 4 or not word.isalpha():
        return word
    place = stream.between(1, len(word) - 2)
    slip = stream.below(4)
    if slip == 0:
        return word[:place] + word[place + 1 :]
    if slip == 1:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if slip == 2:
        return word[:place] + word[place] + word[place:]
    return word[:place] + stream.pick(_LETTERS) + word[place + 1 :]


def shortened(words: Sequence[str], stream: Stream) -> str:
    """Words as a journal's abbreviation has them: long ones cut, with a full stop or not."""
    stop = "." if stream.chance(0.7) else ""
    return " ".join(word if len(word) < 6 else word[: stream.between(3, 5)] + stop for word in words)
