"""What `tagsmith tag` reads: raw text by lines, columns by sentences, objects by lines."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from tagsmith.cli import recognition
from tagsmith.cli.errors import CommandError
from tagsmith.cli.recognition import HEAD_BYTES

Rows = list[list[str]]


@contextmanager
def opened(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file, or standard input. At a terminal, print what to type."""
    if path is not None and str(path) != "-":
        with path.open("rb") as file:
            yield file
        return
    if sys.stdin.isatty():
        sys.stderr.write("Type or paste text; end with Ctrl-D on an empty line.\n")
    yield sys.stdin.buffer


def head_of(source: IO[bytes]) -> tuple[bytes, Iterable[bytes]]:
    """Return the beginning of a stream, and all of the stream as blocks, decompressed."""
    blocks = recognition.decoded(source)
    head = b""
    for block in blocks:
        head += block
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES], chain([head], blocks)


def lines_of(blocks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a stream of UTF-8, without line breaks."""
    rest = b""
    first = True
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.decode("utf-8-sig" if first else "utf-8").rstrip("\r")
            first = False
    if rest:
        yield rest.decode("utf-8-sig" if first else "utf-8").rstrip("\r")


def sentences_of(blocks: Iterable[bytes], *, tabs: bool) -> Iterator[Rows]:
    """The sentences of column text. CoNLL-U has fields separated by tabs, and lines that are not tokens."""
    rows: Rows = []
    for line in lines_of(blocks):
        if not line.strip() or line.startswith("-DOCSTART-"):
            if rows:
                yield rows
            rows = []
        elif not tabs:
            rows.append(line.split())
        elif line[0] != "#" and line.partition("\t")[0].isdigit():
            rows.append(line.split("\t"))
    if rows:
        yield rows


def objects_of(blocks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The objects of NDJSON: `text` or `tokens`, and perhaps an `id`. A list is a sentence, a string a text."""
    for number, line in enumerate(lines_of(blocks), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise CommandError(f"Line {number:,} of the input is not valid JSON: {error}.") from None
        if isinstance(value, str):
            value = {"text": value}
        elif isinstance(value, list):
            value = {"tokens": value}
        if not isinstance(value, dict) or not ("text" in value or "tokens" in value):
            raise CommandError(f"Line {number:,} of the input must be an object with text or tokens.")
        yield value
