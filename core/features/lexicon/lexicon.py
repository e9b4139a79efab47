"""Lexicons: five kinds of UTF-8 text with one or more entries per line.

| kind | line |
|---|---|
| `words` | an entry of one or more tokens, separated by blanks |
| `typed` | a type, a tab, an entry |
| `categories` | a category and its words, separated by blanks |
| `clusters` | a bit string, a word and optionally its count, separated by tabs: the `paths` file of Brown clustering |
| `text` | raw text, for statistics of its character n-grams |

Blank lines are ignored. So are lines that begin with `#` and a blank, except in kind `text`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tagsmith.core.base.errors import Fault, Invalid

Kind = Literal["words", "typed", "categories", "clusters", "text"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: The largest lists of names in use have a few million entries. An entry takes about 50 bytes in a model.
MAX_ENTRIES = 4_000_000
#: Longer than any name. Matching walks at most this far from each token.
MAX_ENTRY_TOKENS = 64
MAX_FAULTS = 100

_BITS = re.compile(r"[01]{1,64}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
#: A type or a category becomes part of the values of a column.
_NAME = re.compile(r"\S{1,64}")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The entries in the order of the file. `classes` has their types, categories or bit strings, or is empty."""

    kind: Kind
    entries: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def class_names(self) -> list[str]:
        """The distinct classes, sorted."""
        return sorted(set(self.classes))


#: Lexicons by id.
Lexicons = Mapping[str, Lexicon]
#: For features that need none.
NO_LEXICONS: Lexicons = {}


class LexiconReader:
    """Reads a lexicon from chunks of bytes. Raises `Invalid` with line numbers."""

    def __init__(self, kind: Kind, *, max_line_bytes: int) -> None:
        self._kind: Kind = kind
        self._max_line_bytes = max_line_bytes
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Add a chunk."""
        self._pending += chunk

    def finish(self) -> Lexicon:
        """Parse all chunks."""
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
            raise Invalid("The lexicon cannot be parsed.", faults[:MAX_FAULTS], code="invalid_lexicon")
        if len(entries) > MAX_ENTRIES:
            raise Invalid(
                f"The lexicon has more than {MAX_ENTRIES:,} entries.",
                [Fault("This entry is one too many. Split the lexicon.", line=number)],
                code="too_many_entries",
            )
        if not entries:
            raise Invalid(
                "The lexicon has no entries.",
                [Fault("The file has no entry. Add at least one.", line=1)],
                code="empty_lexicon",
            )
        return Lexicon(self._kind, tuple(entries), tuple(classes) if self._kind not in _PLAIN else ())

    def _lines(self, faults: list[Fault]) -> Iterator[tuple[int, str]]:
        """Decode the lines and skip blank ones and comments. Lines that are not text become faults."""
        for number, raw in enumerate(
            bytes(self._pending).removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1
        ):
            if len(raw) > self._max_line_bytes:
                faults.append(
                    Fault(f"The line is longer than {self._max_line_bytes} bytes. Split it.", line=number)
                )
                continue
            try:
                line = raw.decode().rstrip("\r")
            except UnicodeDecodeError as error:
                faults.append(
                    Fault(f"Byte {error.start + 1} is not UTF-8. Encode the file in UTF-8.", line=number)
                )
                continue
            control = _CONTROL.search(line)
            if control:
                reason = f"Character {control.start() + 1} is the control character {ord(control[0]):#04x}. Remove it."
                faults.append(Fault(reason, line=number))
            elif line.strip() and not (line.startswith(("# ", "#\t")) and self._kind != "text"):
                yield number, line


def read_lexicon(kind: Kind, chunks: Iterable[bytes], *, max_line_bytes: int) -> Lexicon:
    """Read a lexicon from chunks of bytes."""
    reader = LexiconReader(kind, max_line_bytes=max_line_bytes)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def id_of(kind: str, sha256: str) -> str:
    """Return the id of a lexicon whose text has this checksum. Equal texts of the same kind have the same id."""
    return "lex_" + hashlib.sha256(f"{kind}:{sha256}".encode()).hexdigest()[:40]


def known_kind(name: str) -> Kind:
    """Return `name` as a kind, or raise Invalid."""
    for kind in KINDS:
        if kind == name:
            return kind
    known = ", ".join(KINDS)
    raise Invalid(
        f"There is no kind {name!r}. Use one of: {known}.",
        [Fault(f"The kind is unknown. Use one of: {known}.", pointer="/kind")],
        code="unknown_kind",
    )


def _entry(text: str) -> str:
    tokens = text.split()
    if not tokens:
        raise ValueError("The entry is empty. Remove the line.")
    if len(tokens) > MAX_ENTRY_TOKENS:
        raise ValueError(f"The entry has {len(tokens)} tokens. Use at most {MAX_ENTRY_TOKENS}.")
    return " ".join(tokens)


def _name(text: str, what: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"A {what} has 1 to 64 characters and no blank. This one is {text[:20]!r}.")
    return text


def _words(line: str) -> Iterator[tuple[str, str]]:
    yield "", _entry(line)


def _typed(line: str) -> Iterator[tuple[str, str]]:
    name, tab, entry = line.partition("\t")
    if not tab:
        raise ValueError("The line has no tab. Write a type, a tab and an entry.")
    yield _name(name.strip(), "type"), _entry(entry)


def _categories(line: str) -> Iterator[tuple[str, str]]:
    name, *words = line.split()
    if not words:
        raise ValueError("The line has only one field. Write a category and its words.")
    _name(name, "category")
    for word in words:
        yield name, word


def _clusters(line: str) -> Iterator[tuple[str, str]]:
    fields = line.split("\t")
    if len(fields) not in (2, 3):
        raise ValueError(
            f"The line has {len(fields)} fields. Write bits, a word and perhaps a count, with tabs between."
        )
    if not _BITS.fullmatch(fields[0]):
        raise ValueError(f"The line starts with {fields[0][:20]!r}. Start it with 1 to 64 bits, each 0 or 1.")
    if not fields[1]:
        raise ValueError("The word is empty. Write a word after the bits.")
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
