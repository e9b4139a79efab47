"""What a file is: compressed or not, raw text, columns, NDJSON or CoNLL-U. Recognised by content."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Literal

from tagsmith.core.corpus.formats.recognition import Head

#: Suffixes that a path of a corpus has, and a name of a corpus has not.
SUFFIXES = frozenset(
    ".conll .conllu .conllx .txt .tsv .iob .iob2 .bio .json .jsonl .ndjson .crfsuite .zip .gz .zst .xz".split()
)
BLOCK_BYTES = 1 << 20
#: Files are trusted more than uploads: only memory limits them.
MAX_DECODED_BYTES = 1 << 40
#: Lines of one width that make columns out of what could be text.
LEAST_LINES = 3

Content = Literal["text", "columns", "ndjson", "conllu"]

#: The last column of a file without tabs: `NNP`, `B-PER`, `B-author`. Few lines of text end with such a word.
_TAG = re.compile(r"[BIESLMU]-[!-~]+|[!-`{-~]+")
_OBJECT = re.compile(r'\{\s*("|\}\s*$)')
_BLANK_LINE = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class ModelInput:
    """What a model takes: columns per token (0 for named attributes, None if unknown), characters of a text."""

    columns: int | None = None
    characters: bool = False
    #: The names of the columns.
    names: tuple[str, ...] = ()
    #: Whether it gives trees.
    parses: bool = False


def decoded(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield the content of a file as it comes, decompressed if its first bytes say that it is compressed."""
    from tagsmith.core.corpus import content_encoding  # noqa: PLC0415

    blocks = iter(lambda: file.read1(BLOCK_BYTES), b"")
    return content_encoding.decoded(blocks, None, max_decoded_bytes=MAX_DECODED_BYTES, recognise=True)


def content_of(head: Head, model: ModelInput) -> Content:
    """What to tag."""
    lines = [line for line in head.filled if not line.startswith("-DOCSTART-")]
    if not lines:
        return "text"
    if _is_json(lines[0]):
        return "ndjson"
    if _is_conllu(head):
        return "conllu"
    if len({len(line.split()) for line in lines}) > 1:
        return "text"
    return "columns" if _are_rows(lines, head, model) else "text"


def _are_rows(lines: list[str], head: Head, model: ModelInput) -> bool:
    """Whether lines of one width are tokens.

    They are if they have tabs. For a model of several columns, they may have one more, the tag. For a model that takes
    text, they are tokens if they have one token each, or tags at the end and blank lines between sentences.
    """
    if model.columns == 0:
        return False
    if all("\t" in line.strip() for line in lines):
        return True
    if model.columns not in (1, None):
        return len(lines[0].split()) <= model.columns + 1
    if len(lines) < LEAST_LINES:
        return False
    fields = [line.split() for line in lines]
    if len(fields[0]) == 1:
        return not model.characters or all(len(token) == 1 for (token,) in fields)
    separated = _BLANK_LINE.search("\n".join(head.lines).strip())
    return separated is not None and all(_TAG.fullmatch(row[-1]) for row in fields)


def _is_json(line: str) -> bool:
    """Whether a line is a JSON list, or meant as an object: faults of an object are reported by its reader."""
    if not line.startswith("["):
        return _OBJECT.match(line) is not None
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _is_conllu(head: Head) -> bool:
    """Whether lines are those of CoNLL-U or CoNLL-X, which are tagged alike.

    The formats of corpora, whose import takes half a second, are asked only if a line has ten fields.
    """
    if not any(line.count("\t") == 9 for line in head.filled):
        return False
    from tagsmith.core.corpus.formats import registry  # noqa: PLC0415

    return registry.recognised(head) in ("conllu", "conllx")
