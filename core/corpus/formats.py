"""The formats a corpus can come in: one entry each."""

from typing import Protocol

from core.corpus.conll import ConllReader
from core.corpus.corpus import Corpus
from core.corpus.crfsuite import CrfsuiteReader
from core.corpus.ndjson import NdjsonReader
from core.errors import Fault, Invalid


class Reader(Protocol):
    """Takes bytes cut anywhere, gives a corpus; raises `Invalid` with line numbers."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> Corpus: ...


class _Maker(Protocol):
    def __call__(self, *, max_line_bytes: int, labelled: bool) -> Reader: ...


_READERS: dict[str, _Maker] = {"conll": ConllReader, "crfsuite": CrfsuiteReader, "ndjson": NdjsonReader}


def known_formats() -> tuple[str, ...]:
    """Names `reader` accepts."""
    return tuple(_READERS)


def reader(format: str, *, max_line_bytes: int, labelled: bool = True) -> Reader:  # noqa: A002
    """A reader of `format`."""
    make = _READERS.get(format)
    if make is None:
        known = ", ".join(known_formats())
        raise Invalid(
            f"Format {format!r} is not one of: {known}.",
            [Fault(f"unknown format; known: {known}")],
            code="unknown_format",
        )
    return make(max_line_bytes=max_line_bytes, labelled=labelled)
