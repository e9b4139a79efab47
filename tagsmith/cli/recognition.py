"""What a file is: compressed or not, raw text or columns, templates of which syntax. Recognised by content."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

#: Suffixes that a path of a corpus has, and a name of a corpus has not.
SUFFIXES = frozenset(
    ".conll .conllu .txt .tsv .iob .iob2 .bio .json .jsonl .ndjson .crfsuite .zip .gz .zst .xz".split()
)
BLOCK_BYTES = 1 << 20
#: Files are trusted more than uploads: only memory limits them.
MAX_DECODED_BYTES = 1 << 40
#: How much of a file is looked at.
HEAD_BYTES = 1 << 16
#: Lines of one width that make columns out of what could be text.
LEAST_LINES = 3

Content = Literal["text", "columns", "ndjson", "conllu"]

_COMPRESSED = re.compile(r"\.(gz|zst|xz|zip)$")
_CONLLU_ROW = re.compile(r"\d+([-.]\d+)?\t")


def decoded(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in blocks, decompressed if its first bytes say that it is compressed."""
    from tagsmith.core.corpus import content_encoding  # noqa: PLC0415

    blocks = iter(lambda: file.read(BLOCK_BYTES), b"")
    return content_encoding.decoded(blocks, None, max_decoded_bytes=MAX_DECODED_BYTES, recognise=True)


def corpus_name(path: Path) -> str:
    """The name of a corpus that is uploaded from a file: the name of the file without suffixes."""
    name = _COMPRESSED.sub("", path.name)
    return Path(name).stem or name


def content_of(head: bytes, columns: int | None = None) -> Content:
    """What to tag: raw text, columns, NDJSON or CoNLL-U. `columns` is the number that the model needs, if known."""
    lines = _lines(head)
    if not lines:
        return "text"
    if _is_json(lines[0]):
        return "ndjson"
    if _is_conllu(lines):
        return "conllu"
    widths = {len(line.split()) for line in lines}
    if len(widths) > 1:
        return "text"
    (width,) = widths
    if columns is not None and columns > 1:
        return "columns"
    tabs = all("\t" in line.strip() for line in lines)
    return "columns" if tabs or len(lines) >= LEAST_LINES or (columns == 0 and width > 0) else "text"


def template_syntax(text: str) -> str:
    """The syntax of a template file: `%x[-1,0]` in both; Wapiti also has `*`, `%t`, `%m`, `%X`."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    own = any(line.startswith("*") or re.search(r"%[tmTMX]\[|%x\[@", line, re.ASCII) for line in lines)
    lower = any(line[0] in "ub" for line in lines)
    return "wapiti" if own or lower else "crf++"


def _lines(head: bytes) -> list[str]:
    """The lines of the head that have content. The last one may be cut off, so it counts only if it is alone."""
    text = head.decode("utf-8-sig", errors="replace")
    lines = text.split("\n")
    if len(head) >= HEAD_BYTES and len(lines) > 1:
        lines = lines[:-1]
    return [line.rstrip("\r") for line in lines if line.strip() and not line.startswith("-DOCSTART-")]


def _is_json(line: str) -> bool:
    if line[:1] not in "{[":
        return False
    try:
        json.loads(line)
    except ValueError:
        # A line that is longer than the head cannot be checked.
        return line.startswith('{"') and len(line) > HEAD_BYTES // 2
    return True


def _is_conllu(lines: list[str]) -> bool:
    rows = [line for line in lines if not line.startswith("#")]
    return bool(rows) and all(_CONLLU_ROW.match(line) and line.count("\t") == 9 for line in rows[:50])
