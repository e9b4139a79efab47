"""A slow, obvious reader, and what tests of corpora share."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Self

from tagsmith.core.corpus.corpus import Corpus

Sentence = list[tuple[str, ...]]  # rows of fields


def naive_read(text: str) -> list[Sentence]:
    """Sentences of well-formed column text."""
    sentences: list[Sentence] = []
    rows: Sentence = []
    for line in text.removeprefix("\ufeff").split("\n"):
        fields = [field for field in line.removesuffix("\r").replace("\t", " ").split(" ") if field]
        if fields and fields[0] != "-DOCSTART-":
            rows.append(tuple(fields))
        elif rows:
            sentences.append(rows)
            rows = []
    return sentences + ([rows] if rows else [])


def rows_of(corpus: Corpus) -> list[Sentence]:
    """The sentences of a corpus, as the naive reader gives them."""
    columns = []
    for column in corpus.every_column():
        strings = column.vocabulary.strings()
        columns.append([strings[i] for i in column.ids.tolist()])
    bounds = corpus.offsets.tolist()
    rows = list(zip(*columns, strict=True))
    return [rows[a:b] for a, b in pairwise(bounds)]


def contents(corpus: Corpus) -> object:
    """All there is to a corpus, to compare with ==."""
    return (
        [(c.name, c.vocabulary.strings(), c.ids.tolist()) for c in corpus.every_column()],
        corpus.labels is None,
        corpus.offsets.tolist(),
        None if corpus.trees is None else corpus.trees.heads.tolist(),
        None if corpus.weights is None else corpus.weights.tolist(),
    )


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """`data` cut every `size` bytes."""
    return (data[i : i + size] for i in range(0, len(data), size))


class PeakMemory:
    """How far the resident memory of this process rises above where it stood, seen by the kernel."""

    def __enter__(self) -> Self:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = _status("VmHWM")
        return self

    def __exit__(self, *error: object) -> None:
        self.grown_bytes = _status("VmHWM") - self._before


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)
