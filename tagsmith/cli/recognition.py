"""What a file is: compressed or not, which format, raw text or columns. Recognised by content."""

import bz2
import gzip
import io
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal, cast

#: Suffixes that a path of a corpus has, and a name of a corpus has not.
SUFFIXES = frozenset(
    ".conll .conllu .txt .tsv .iob .iob2 .bio .json .jsonl .ndjson .crfsuite .zip .gz .zst .xz .bz2".split()
)
#: How much of a file is looked at.
HEAD_BYTES = 1 << 16
#: Lines of one width that make columns out of what could be text.
LEAST_LINES = 3

Content = Literal["text", "columns", "ndjson", "conllu"]

_COMPRESSED = re.compile(r"\.(gz|zst|xz|bz2)$")
_CONLLU_ROW = re.compile(r"\d+([-.]\d+)?\t")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed if its first bytes say that it is compressed."""
    with path.open("rb") as file:
        start = file.read(8)
    for magic, opener in _OPENERS.items():
        if start.startswith(magic):
            return cast(IO[bytes], opener(path))
    return path.open("rb")


def plain_source(path: Path) -> tuple[Path | bytes, str]:
    """Return what to upload of a file, and its name without suffixes. The client sends gzip and zstd as they are."""
    name = _COMPRESSED.sub("", path.name)
    stem = Path(name).stem or name
    if path.suffix in (".xz", ".bz2"):
        with opened(path) as file:
            return file.read(), stem
    return path, stem


def format_of(path: Path) -> str:
    """The format of a labelled corpus."""
    with opened(path) as file:
        return format_of_head(file.read(HEAD_BYTES))


def format_of_head(head: bytes) -> str:
    """The format of a labelled corpus with this beginning; conll when in doubt."""
    if head.startswith(b"PK"):
        return "brat"
    lines = _lines(head)
    if not lines:
        return "conll"
    if _is_json(lines[0]) or _is_conllu(lines):
        return "ndjson" if _is_json(lines[0]) else "conllu"
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    if rows and all(len(row) > 1 for row in rows):
        attributes = [cell for row in rows for cell in row[1:] if cell]
        if attributes and sum("=" in cell for cell in attributes) > 0.8 * len(attributes):
            return "crfsuite"
    widths = {len(line.split()) for line in lines}
    if len(widths) > 1 and len(_CJK.findall("".join(lines))) > sum(map(len, lines)) // 3:
        return "segmented"
    return "conll"


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


def _zstd(path: Path) -> IO[bytes]:
    import zstandard  # noqa: PLC0415

    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        return io.BytesIO(reader.read())


#: How to open compressed files, by their first bytes.
_OPENERS: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"BZh": bz2.open,
    b"\x28\xb5\x2f\xfd": _zstd,
}


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
