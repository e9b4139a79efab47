"""What `tagsmith tag` reads: raw text by lines, columns by sentences, objects by lines.

Input is read as it comes. A batch has what one block of input completes, so that typed lines are tagged at once.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tagsmith.cli.errors import CommandError
from tagsmith.core.corpus.formats.recognition import HEAD_BYTES, Head

Rows = list[list[str]]
ItemT = TypeVar("ItemT")

#: Sentences of one request or one call of the engine: large compared with its cost, small compared with memory.
BATCH = 500
#: Characters of one request: as JSON of UTF-8 they take less than what a server accepts.
BATCH_CHARACTERS = 100_000
#: The first column of a line that is not a token.
DOCUMENT_START = "-DOCSTART-"

_BYTE_ORDER_MARK = "\ufeff"
_COLUMN = re.compile(r"[^ \t]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class TextLine(NamedTuple):
    """A line without its end, and its offset in the text: the number of characters before it, removed ones included."""

    text: str
    begin: int
    end: str = "\n"


class InputLine(NamedTuple):
    """A line of column text, and whether it is a token."""

    text: str
    token: bool
    end: str


class InputSentence(NamedTuple):
    """The tokens of a sentence, and its lines with those that are not tokens."""

    rows: Rows
    lines: list[InputLine]

    def characters(self) -> int:
        """Return how long the sentence is."""
        return sum(len(line.text) for line in self.lines)


@contextmanager
def opened(path: Path | None) -> Iterator[BufferedIOBase]:
    """Open a file, or standard input. At a terminal, print what to type."""
    if path is not None and str(path) != "-":
        with path.open("rb") as file:
            yield file
        return
    if sys.stdin.isatty():
        sys.stderr.write("Type or paste text; end with Ctrl-D on an empty line.\n")
    yield sys.stdin.buffer  # type: ignore[misc]  # typeshed has BinaryIO, without read1


def head_of(blocks: Iterator[bytes], *, typed: bool) -> tuple[Head, Iterator[bytes]]:
    """Return the beginning of a stream, and all of the stream. Of what is typed, the first block is the beginning."""
    data = b""
    whole = True
    for block in blocks:
        data += block
        if typed or len(data) >= HEAD_BYTES:
            whole = False
            break
    return Head(data[:HEAD_BYTES], whole), chain([data], blocks)


def read_lines(blocks: Iterable[bytes]) -> Iterator[list[TextLine]]:
    """Yield the lines of a stream of UTF-8 in batches."""
    for lines in _complete_lines(blocks):
        yield from _batches(lines, lambda line: len(line.text))


def _batches(items: list[ItemT], characters: Callable[[ItemT], int]) -> Iterator[list[ItemT]]:
    batch: list[ItemT] = []
    size = 0
    for item in items:
        added = characters(item)
        if batch and (len(batch) == BATCH or size + added > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += added
    if batch:
        yield batch


def _complete_lines(blocks: Iterable[bytes]) -> Iterator[list[TextLine]]:
    """Yield the lines that each block completes."""
    rest = b""
    begin = 0
    for block in chain(blocks, [None]):
        *raw, rest = (rest + (block or b"")).split(b"\n")
        if block is None and rest:
            raw = [rest]
        lines = []
        for each in raw:
            text = each.decode()
            mark = begin == 0 and text.startswith(_BYTE_ORDER_MARK)
            end = "" if block is None else "\n"
            lines.append(TextLine(text[mark:].rstrip("\r"), begin + mark, end))
            begin += len(text) + 1
        yield lines


#: Makes a row of a line, given its number; None if it is not a token.
RowOf = Callable[[str, int], list[str] | None]


def read_sentences(blocks: Iterable[bytes], word: RowOf | None = None) -> Iterator[list[InputSentence]]:
    """Yield the sentences of column text in batches. What follows the last one is a sentence without tokens.

    `word` makes the rows of CoNLL-U. Other text has columns.
    """
    conllu, row_of = word is not None, word or ColumnRows().row_of
    sentence = InputSentence([], [])
    number = 0
    for lines in _complete_lines(blocks):
        sentences = []
        for line in lines:
            number += 1
            blank = not line.text.strip(" \t")
            row = None if blank else row_of(line.text, number)
            sentence.lines.append(InputLine(line.text, row is not None, line.end))
            if row is not None:
                sentence.rows.append(row)
            elif sentence.rows and (blank or not conllu):
                sentences.append(sentence)
                sentence = InputSentence([], [])
        yield from _batches(sentences, InputSentence.characters)
    if sentence.lines:
        yield [sentence]


class ColumnRows:
    """Splits lines of columns as the reader of corpora does: at blanks and tabs, all lines alike."""

    def __init__(self) -> None:
        self._width = 0
        self._first = 0

    def row_of(self, line: str, number: int) -> list[str] | None:
        """Return the columns of a line; None for the beginning of a document."""
        row = _COLUMN.findall(line)
        if row[0] == DOCUMENT_START:
            return None
        if _CONTROL.search(line):
            raise CommandError(f"Line {number:,} of the input has a control character. Remove it.")
        if not self._width:
            self._width, self._first = len(row), number
        if len(row) != self._width:
            raise CommandError(
                f"Line {number:,} of the input: expected {self._width} columns as in line {self._first:,}, "
                f"found {len(row)}."
            )
        return row


def _check_characters(value: Any, number: int) -> None:
    """Raise CommandError for an escape that is half a character, which no program can write."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CommandError(
            f"Line {number:,} of the input has half of a surrogate pair, which is not a character."
        ) from None


def read_objects(blocks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The objects of NDJSON: `text` or `tokens`, and perhaps an `id`. A list is a sentence, a string a text.

    Other fields are left out.
    """
    lines = chain.from_iterable(_complete_lines(blocks))
    for number, (line, *_) in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise CommandError(f"Line {number:,} of the input is not valid JSON: {error}.") from None
        if _SURROGATE.search(line):
            _check_characters(value, number)
        if isinstance(value, str):
            value = {"text": value}
        elif isinstance(value, list):
            value = {"tokens": value}
        if not isinstance(value, dict) or not ("text" in value or "tokens" in value):
            raise CommandError(f"Line {number:,} of the input must be an object with text or tokens.")
        yield {name: value[name] for name in ("id", "text", "tokens") if name in value}
