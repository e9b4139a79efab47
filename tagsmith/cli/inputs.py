"""What `tagsmith tag` reads: raw text by lines, columns by sentences, objects by lines.

Input is read as it comes. A batch has what one block of input completes, so that typed lines are tagged at once.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
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

_BYTE_ORDER_MARK = "\ufeff"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class TextLine(NamedTuple):
    """A line without its end, and its offset in the text: the number of characters before it, removed ones included."""

    text: str
    begin: int


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
    return chain.from_iterable(map(_batches, _complete_lines(blocks)))


def _batches(items: list[ItemT]) -> Iterator[list[ItemT]]:
    return (items[first : first + BATCH] for first in range(0, len(items), BATCH))


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
            lines.append(TextLine(text[mark:].rstrip("\r"), begin + mark))
            begin += len(text) + 1
        yield lines


def read_sentences(blocks: Iterable[bytes], *, conllu: bool) -> Iterator[list[Rows]]:
    """Yield the sentences of column text in batches.

    CoNLL-U has fields separated by tabs, and lines that are not tokens.
    """
    rows: Rows = []
    for lines in _complete_lines(blocks):
        sentences: list[Rows] = []
        for line, _ in lines:
            if not line.strip() or line.startswith("-DOCSTART-"):
                if rows:
                    sentences.append(rows)
                rows = []
            elif not conllu:
                rows.append(line.split())
            elif line[0] != "#" and line.partition("\t")[0].isdigit():
                rows.append(line.split("\t"))
        yield from _batches(sentences)
    if rows:
        yield [rows]


def _check_characters(value: Any, number: int) -> None:
    """Raise CommandError for an escape that is half a character, which no program can write."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CommandError(
            f"Line {number:,} of the input has half of a surrogate pair, which is not a character."
        ) from None


def read_objects(blocks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The objects of NDJSON: `text` or `tokens`, and perhaps an `id`. A list is a sentence, a string a text."""
    lines = chain.from_iterable(_complete_lines(blocks))
    for number, (line, _) in enumerate(lines, start=1):
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
        yield value
