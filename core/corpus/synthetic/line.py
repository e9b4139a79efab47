"""Build a sentence: tokens with IOB2 labels, then noise, then text."""

import re
from collections.abc import Sequence

from tagsmith.core.corpus.synthetic.stream import Stream

#: Words, numbers and initials with a full stop are tokens; every other character is a token of its own.
_TOKEN = re.compile(r"[A-Z]\.(?=[\s,)-]|$)|\w+(?:['\u2019]\w+)*|\S")

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def split_tokens(text: str) -> list[str]:
    """Split text into tokens."""
    return _TOKEN.findall(text)


def coarse_class(token: str) -> str:
    """Return a class of the token by its characters, such as YEAR or CAP."""
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
    """The tokens and labels of a sentence that is being built."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.labels: list[str] = []

    def field(self, kind: str, text: str) -> None:
        """Add a labelled span."""
        for number, token in enumerate(split_tokens(text)):
            self.tokens.append(token)
            self.labels.append(("I-" if number else "B-") + kind)

    def plain(self, text: str) -> None:
        """Add tokens outside any span."""
        for token in split_tokens(text):
            self.tokens.append(token)
            self.labels.append("O")

    def spoil(self, stream: Stream, *, typos: float, drops: float) -> None:
        """Misspell each word with probability `typos`; drop each mark outside spans with probability `drops`."""
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
        """Convert the whole line to lower or upper case with these probabilities."""
        if stream.chance(lower):
            self.tokens = [token.lower() for token in self.tokens]
        elif stream.chance(upper):
            self.tokens = [token.upper() for token in self.tokens]

    def conll(self, *, classes: bool = True) -> str:
        """Return the sentence as column text: token, coarse class unless `classes` is false, label; a blank line."""
        rows = [
            f"{token} {coarse_class(token)} {label}\n" if classes else f"{token} {label}\n"
            for token, label in zip(self.tokens, self.labels, strict=True)
        ]
        return "".join(rows) + "\n"


def misspelt(word: str, stream: Stream) -> str:
    """Return the word with one typing error. Numbers, marks and short words are unchanged."""
    if len(word) < 4 or not word.isalpha():
        return word
    place = stream.between(1, len(word) - 2)
    error = stream.below(4)
    if error == 0:
        return word[:place] + word[place + 1 :]
    if error == 1:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if error == 2:
        return word[:place] + word[place] + word[place:]
    return word[:place] + stream.pick(_LETTERS) + word[place + 1 :]


def shortened(words: Sequence[str], stream: Stream) -> str:
    """Abbreviate words as in names of journals: long words are cut, with or without a full stop."""
    stop = "." if stream.chance(0.7) else ""
    return " ".join(word if len(word) < 6 else word[: stream.between(3, 5)] + stop for word in words)
