"""Changes of inputs at random: bytes, numbers, words and whole parts, so that nonsense stays close to sense."""

import random
import re
from collections.abc import Callable, Sequence

#: Longer inputs find nothing more, and take longer.
MAX_BYTES = 1 << 14
NUMBERS = [b"0", b"-1", b"1", b"2", b"255", b"65536", b"2147483647", b"-2147483648", b"9223372036854775808",
           b"9" * 30, b"1e309", b"-0.0", b"NaN", b"0x1p-1080"]  # fmt: skip
FRAGMENTS = [b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\r\n", b"\n\n", b"\t", b" ", b"{",
             b"}", b"[", b"]", b'"', b"\\", b"\\u0000", b"\\ud800", b"null", b"true", b"*", b"+", b"(", b")", b"|",
             b"{200}", b"%x[", b"@", b":", b",", b"/", b"-", b"^", b"$", b"[^", b"[[:alpha:]]", b"\\p{L}"]  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(\.\d+)?")
_WORD = re.compile(rb"[\w.-]+")

Change = Callable[[bytearray, "Mutator"], None]


class Mutator:
    """Makes inputs from others. The same seed makes the same inputs."""

    def __init__(self, seed: int, seeds: Sequence[bytes]) -> None:
        self.chance = random.Random(seed)
        self.words = sorted({word for text in seeds for word in _WORD.findall(text) if len(word) < 40})

    def mutated(self, content: bytes, others: Sequence[bytes]) -> bytes:
        """Change an input in one or more places."""
        text = bytearray(content)
        if others and self.chance.random() < 0.1:
            other = self.chance.choice(others)
            text[self.place(text) :] = other[self.place(other) :]
        while True:
            self.chance.choice(CHANGES)(text, self)
            if self.chance.random() < 0.4:
                return bytes(text[:MAX_BYTES])

    def place(self, text: bytes | bytearray) -> int:
        return self.chance.randint(0, len(text))

    def part(self, text: bytearray) -> slice:
        """A part, most often a short one."""
        begin = self.place(text)
        longest = self.chance.choice((1, 4, 16, 256))
        return slice(begin, min(len(text), begin + self.chance.randint(1, longest)))


def _flip(text: bytearray, m: Mutator) -> None:
    if text:
        text[m.chance.randrange(len(text))] ^= 1 << m.chance.randrange(8)


def _byte(text: bytearray, m: Mutator) -> None:
    if text:
        text[m.chance.randrange(len(text))] = m.chance.choice(
            (0, 1, 0x7F, 0x80, 0xFF, m.chance.randrange(256))
        )


def _delete(text: bytearray, m: Mutator) -> None:
    del text[m.part(text)]


def _repeat(text: bytearray, m: Mutator) -> None:
    part = m.part(text)
    text[part] = text[part] * m.chance.choice((2, 3, 60))


def _move(text: bytearray, m: Mutator) -> None:
    part = m.part(text)
    taken = text[part]
    at = m.place(text)
    text[at:at] = taken


def _fragment(text: bytearray, m: Mutator) -> None:
    at = m.place(text)
    text[at:at] = m.chance.choice(FRAGMENTS)


def _word(text: bytearray, m: Mutator) -> None:
    """Replace a word by one of the seeds, or insert one."""
    found = list(_WORD.finditer(text))
    if not m.words:
        return
    if found and m.chance.random() < 0.7:
        text[slice(*m.chance.choice(found).span())] = m.chance.choice(m.words)
    else:
        at = m.place(text)
        text[at:at] = m.chance.choice(m.words)


def _number(text: bytearray, m: Mutator) -> None:
    found = list(_NUMBER.finditer(text))
    if found:
        text[slice(*m.chance.choice(found).span())] = m.chance.choice(NUMBERS)


def _integer(text: bytearray, m: Mutator) -> None:
    """Replace four or eight bytes by an integer, as binary files have them."""
    size = m.chance.choice((2, 4, 8))
    at = m.place(text)
    value = m.chance.choice((0, 1, 2, 63, 64, 255, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, len(text)))
    text[at : at + size] = (value % (1 << (8 * size))).to_bytes(size, "little")


def _cut(text: bytearray, m: Mutator) -> None:
    del text[m.place(text) :]


CHANGES: list[Change] = [_flip, _byte, _delete, _repeat, _move, _fragment, _word, _number, _integer, _cut]
