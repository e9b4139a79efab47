"""The formats a corpus can come in: one entry each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from core.corpus import options as opts
from core.corpus.conll import ConllReader
from core.corpus.corpus import Corpus
from core.corpus.crfsuite import CrfsuiteReader
from core.corpus.ndjson import NdjsonReader
from core.corpus.options import ConllOptions, CrfsuiteOptions, NdjsonOptions, Options, SegmentedOptions
from core.corpus.segmented import SegmentedReader
from core.errors import Fault, Invalid

Chosen = TypeVar("Chosen", bound=Options)


class Reader(Protocol):
    """Takes bytes cut anywhere, gives a corpus; raises `Invalid` with line numbers."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> Corpus: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader may be asked to hold."""

    max_line_bytes: int


@dataclass(frozen=True, slots=True)
class Format(Generic[Chosen]):
    """How one format is read, and with which options."""

    options: type[Chosen]
    reader: Callable[[Chosen, Limits, bool], Reader]


def _conll(_: ConllOptions, limits: Limits, labelled: bool) -> Reader:
    return ConllReader(max_line_bytes=limits.max_line_bytes, labelled=labelled)


def _crfsuite(_: CrfsuiteOptions, limits: Limits, labelled: bool) -> Reader:
    return CrfsuiteReader(max_line_bytes=limits.max_line_bytes, labelled=labelled)


def _ndjson(_: NdjsonOptions, limits: Limits, labelled: bool) -> Reader:
    return NdjsonReader(max_line_bytes=limits.max_line_bytes, labelled=labelled)


def _segmented(options: SegmentedOptions, limits: Limits, labelled: bool) -> Reader:
    return SegmentedReader(
        max_line_bytes=limits.max_line_bytes, labelled=labelled, coding=options.coding, tags=options.tags
    )


_FORMATS: dict[str, Format[Any]] = {
    "conll": Format(ConllOptions, _conll),
    "crfsuite": Format(CrfsuiteOptions, _crfsuite),
    "ndjson": Format(NdjsonOptions, _ndjson),
    "segmented": Format(SegmentedOptions, _segmented),
}


def known_formats() -> tuple[str, ...]:
    """Names `reader` accepts."""
    return tuple(_FORMATS)


def option_models() -> dict[str, type[Options]]:
    """The class of options of each format."""
    return {name: entry.options for name, entry in _FORMATS.items()}


def parse_options(format: str, values: Mapping[str, object]) -> Options:  # noqa: A002
    """The options of `format`, from a query or from the store."""
    return opts.parse(_format(format).options, values, format)


def reader(
    format: str,  # noqa: A002
    *,
    max_line_bytes: int,
    labelled: bool = True,
    options: Mapping[str, object] | None = None,
) -> Reader:
    """A reader of `format`."""
    entry = _format(format)
    limits = Limits(max_line_bytes)
    reading: Reader = entry.reader(parse_options(format, options or {}), limits, labelled)
    return reading


def _format(name: str) -> Format[Any]:
    entry = _FORMATS.get(name)
    if entry is None:
        known = ", ".join(known_formats())
        raise Invalid(
            f"Format {name!r} is not one of: {known}.",
            [Fault(f"unknown format; known: {known}")],
            code="unknown_format",
        )
    return entry
