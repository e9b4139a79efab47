"""Write a corpus as brat stand-off: a zip of texts and annotations, some sentences in each."""

import zipfile
from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from core.corpus.corpus import Corpus
from core.corpus.write import Cells, batches, unwritable
from core.errors import Fault, Invalid
from core.evaluate.chunks import Chunks

#: What a chunk without a type is called.
UNTYPED = "Span"

#: The same bytes for the same corpus, whenever it is written: the first moment a zip can tell.
_WRITTEN_AT = (1980, 1, 1, 0, 0, 0)


def write_brat(corpus: Corpus) -> Iterator[bytes]:
    """The zip in chunks. A sentence is a line of tokens apart by spaces; chunks of labels are annotations."""
    tokens = corpus.columns[0]
    if corpus.labels is None:
        raise Invalid("The corpus has no labels to annotate.", [Fault("no labels")], code="not_labelled")
    strings = tokens.vocabulary.strings()
    for string in strings:
        if not string or any(c < " " or c == "\x7f" for c in string):
            raise unwritable("a text of brat", tokens.name, string)
    chunks = Chunks.of(corpus.labels.vocabulary.strings(), corpus.labels.ids, corpus.offsets)
    for name in chunks.type_names:
        if any(c <= " " for c in name):
            raise unwritable("a type of brat", corpus.labels.name, name)
    types = [name or UNTYPED for name in chunks.type_names]
    columns: list[Cells] = [
        (strings, tokens.ids),
        # First of a chunk, last of one, and its type.
        (["", "first"], chunks.first.astype(np.int32)),
        (["", "last"], chunks.last.astype(np.int32)),
        (types, chunks.types.astype(np.int32)),
    ]
    return _archive(columns, corpus.offsets.tolist())


class _Sink:
    """What a zip is written to, and taken from as it grows."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes, /) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is held open."""

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def _archive(columns: list[Cells], bounds: list[int]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as out:
        for number, (cells, cuts) in enumerate(batches(columns, bounds), start=1):
            text, annotations = _document(cells, cuts)
            for suffix, content in ((".txt", text), (".ann", annotations)):
                info = zipfile.ZipInfo(f"part-{number:05}{suffix}", _WRITTEN_AT)
                info.compress_type = zipfile.ZIP_DEFLATED
                out.writestr(info, content)
                yield sink.take()
    yield sink.take()


def _document(cells: list[list[str]], cuts: list[tuple[int, int]]) -> tuple[str, str]:
    tokens, firsts, lasts, types = cells
    text = "".join(" ".join(tokens[a:b]) + "\n" for a, b in cuts if b > a)
    # A token is followed by one blank, a space or the end of its line.
    starts = [0, *accumulate(len(token) + 1 for token in tokens)]
    begin = [place for place, first in enumerate(firsts) if first]
    end = [place for place, last in enumerate(lasts) if last]
    lines = []
    for number, (first, last) in enumerate(zip(begin, end, strict=True), start=1):
        start, stop = starts[first], starts[last] + len(tokens[last])
        lines.append(f"T{number}\t{types[first]} {start} {stop}\t{text[start:stop]}\n")
    return text, "".join(lines)
