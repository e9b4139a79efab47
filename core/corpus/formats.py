"""The formats a corpus can come in: one entry each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from core.corpus import options as opts
from core.corpus.brat import BratReader
from core.corpus.conll import ConllReader
from core.corpus.conllu import ConlluReader
from core.corpus.corpus import Corpus
from core.corpus.labels import recode
from core.corpus.options import BratOptions, ConllOptions, ConlluOptions, Options, SegmentedOptions
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
    max_text_bytes: int  # of all members of an archive


@dataclass(frozen=True, slots=True)
class Format(Generic[Chosen]):
    """How one format is read, and with which options."""

    options: type[Chosen]
    reader: Callable[[Chosen, Limits, bool], Reader]


class CorpusReader:
    """Reads a format, then puts the labels into the coding asked for."""

    def __init__(self, reader: Reader, options: Options) -> None:
        self._reader = reader
        self._options = options
        #: Labels that were put right; known at the end.
        self.repaired_labels = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        self._reader.feed(chunk)

    def finish(self) -> Corpus:
        """The corpus of all that was fed."""
        recoded = recode(self._reader.finish(), self._options.labels, repair=self._options.repair)
        self.repaired_labels = recoded.repaired
        return recoded.corpus


def _conll(_: ConllOptions, limits: Limits, labelled: bool) -> Reader:
    return ConllReader(max_line_bytes=limits.max_line_bytes, labelled=labelled)


def _conllu(options: ConlluOptions, limits: Limits, labelled: bool) -> Reader:
    return ConlluReader(
        max_line_bytes=limits.max_line_bytes, labelled=labelled, columns=options.columns, label=options.label
    )


def _segmented(options: SegmentedOptions, limits: Limits, labelled: bool) -> Reader:
    return SegmentedReader(
        max_line_bytes=limits.max_line_bytes, labelled=labelled, coding=options.coding, tags=options.tags
    )


def _brat(options: BratOptions, limits: Limits, labelled: bool) -> Reader:
    return BratReader(
        max_text_bytes=limits.max_text_bytes,
        labelled=labelled,
        tokens=options.tokens,
        conflicts=options.conflicts,
        types=options.types,
    )


_FORMATS: dict[str, Format[Any]] = {
    "conll": Format(ConllOptions, _conll),
    "conllu": Format(ConlluOptions, _conllu),
    "segmented": Format(SegmentedOptions, _segmented),
    "brat": Format(BratOptions, _brat),
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
    max_text_bytes: int = 1 << 30,
    labelled: bool = True,
    options: Mapping[str, object] | None = None,
) -> CorpusReader:
    """A reader of `format`."""
    chosen = parse_options(format, options or {})
    return CorpusReader(
        _format(format).reader(chosen, Limits(max_line_bytes, max_text_bytes), labelled), chosen
    )


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
