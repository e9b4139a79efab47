"""Lexicons as they are uploaded: five kinds of UTF-8 text, an entry or a few a line.

| kind | a line |
|---|---|
| `words` | an entry of one or more tokens, apart by blanks |
| `typed` | a type, a tab, an entry |
| `categories` | a category, then its words, apart by blanks |
| `clusters` | a bit string, a word and perhaps its count, apart by tabs: the `paths` file of Brown clustering |
| `text` | raw text, for the statistics of its characters |

Blank lines mean nothing, nor do lines that begin with `#` and a blank in all kinds but `text`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from core.errors import Fault, Invalid

Kind = Literal["words", "typed", "categories", "clusters", "text"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: The largest lists of names in use have some millions; each entry costs a model some 50 bytes.
MAX_ENTRIES = 4_000_000
#: Longer than any name; matching walks at most so far from each token.
MAX_ENTRY_TOKENS = 64
MAX_FAULTS = 100

_BITS = re.compile(r"[01]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
#: What a type or a category may be: it becomes part of the values of a column.
_NAME = re.compile(r"\S{1,64}")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What was uploaded, in order. `classes` has the type, category or bit string of each entry, else nothing."""

    kind: Kind
    entries: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def class_names(self) -> list[str]:
        """Distinct classes, sorted."""
        return sorted(set(self.classes))


class LexiconReader:
    """Takes bytes cut anywhere, gives the lexicon; raises `Invalid` with line numbers."""

    def __init__(self, kind: Kind, *, max_line_bytes: int) -> None:
        self._kind: Kind = kind
        self._max_line_bytes = max_line_bytes
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._pending += chunk

    def finish(self) -> Lexicon:
        """Give the lexicon of all that was fed."""
        entries: list[str] = []
        classes: list[str] = []
        faults: list[Fault] = []
        for number, line in self._lines(faults):
            if len(faults) >= MAX_FAULTS or len(entries) > MAX_ENTRIES:
                break
            try:
                for name, entry in _PARSERS[self._kind](line):
                    entries.append(entry)
                    classes.append(name)
            except ValueError as error:
                faults.append(Fault(str(error), line=number))
        if faults:
            raise Invalid("The lexicon cannot be read.", faults[:MAX_FAULTS], code="invalid_lexicon")
        if len(entries) > MAX_ENTRIES:
            raise Invalid(
                f"The lexicon has more than {MAX_ENTRIES:,} entries.",
                [Fault("one entry too many", line=number)],
                code="too_many_entries",
            )
        if not entries:
            raise Invalid(
                "The lexicon has no entries.",
                [Fault("no entry in the whole file", line=1)],
                code="empty_lexicon",
            )
        return Lexicon(self._kind, tuple(entries), tuple(classes) if self._kind not in _PLAIN else ())

    def _lines(self, faults: list[Fault]) -> Iterator[tuple[int, str]]:
        """The lines that say something; those that are no text become faults."""
        for number, raw in enumerate(
            bytes(self._pending).removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1
        ):
            if len(raw) > self._max_line_bytes:
                faults.append(Fault(f"longer than {self._max_line_bytes} bytes", line=number))
                continue
            try:
                line = raw.decode().rstrip("\r")
            except UnicodeDecodeError as error:
                faults.append(Fault(f"not UTF-8 at byte {error.start + 1}", line=number))
                continue
            control = _CONTROL.search(line)
            if control:
                reason = f"control character {ord(control[0]):#04x} at character {control.start() + 1}"
                faults.append(Fault(reason, line=number))
            elif line.strip() and not (line.startswith(("# ", "#\t")) and self._kind != "text"):
                yield number, line


def read_lexicon(kind: Kind, chunks: Iterable[bytes], *, max_line_bytes: int) -> Lexicon:
    """The lexicon of `chunks`."""
    reader = LexiconReader(kind, max_line_bytes=max_line_bytes)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def known_kind(name: str) -> Kind:
    """The kind of that name, or Invalid."""
    for kind in KINDS:
        if kind == name:
            return kind
    known = ", ".join(KINDS)
    raise Invalid(
        f"Kind {name!r} is not one of: {known}.",
        [Fault(f"unknown kind; known: {known}", pointer="/kind")],
        code="unknown_kind",
    )


def _entry(text: str) -> str:
    tokens = text.split()
    if not tokens:
        raise ValueError("the entry is empty")
    if len(tokens) > MAX_ENTRY_TOKENS:
        raise ValueError(f"an entry of {len(tokens)} tokens; at most {MAX_ENTRY_TOKENS}")
    return " ".join(tokens)


def _name(text: str, what: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"a {what} has 1 to 64 characters and no blank; this one is {text[:20]!r}")
    return text


def _words(line: str) -> Iterator[tuple[str, str]]:
    yield "", _entry(line)


def _typed(line: str) -> Iterator[tuple[str, str]]:
    name, tab, entry = line.partition("\t")
    if not tab:
        raise ValueError("expected a type, a tab and an entry; there is no tab")
    yield _name(name.strip(), "type"), _entry(entry)


def _categories(line: str) -> Iterator[tuple[str, str]]:
    name, *words = line.split()
    if not words:
        raise ValueError("expected a category and its words; there is one field")
    _name(name, "category")
    for word in words:
        yield name, word


def _clusters(line: str) -> Iterator[tuple[str, str]]:
    fields = line.split("\t")
    if len(fields) not in (2, 3):
        raise ValueError(f"expected bits, word and perhaps a count between tabs; found {len(fields)} fields")
    if not _BITS.fullmatch(fields[0]):
        raise ValueError(f"expected 1 to 64 bits, 0 or 1, first; found {fields[0][:20]!r}")
    if not fields[1]:
        raise ValueError("the word is empty")
    yield fields[0], fields[1]


def _text(line: str) -> Iterator[tuple[str, str]]:
    yield "", line.strip()


_PARSERS = {
    "words": _words,
    "typed": _typed,
    "categories": _categories,
    "clusters": _clusters,
    "text": _text,
}
#: Kinds without classes.
_PLAIN = ("words", "text")
