"""The formats a corpus can come in: one entry each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from core.corpus import conll, conllu, crfsuite, named, segmented
from core.corpus import options as opts
from core.corpus.brat import BratReader
from core.corpus.conll import ConllReader
from core.corpus.conllu import ConlluReader
from core.corpus.corpus import Corpus
from core.corpus.crfsuite import CrfsuiteReader
from core.corpus.labels import recode
from core.corpus.ndjson import NdjsonReader
from core.corpus.options import (
    BratOptions,
    ConllOptions,
    ConlluOptions,
    CrfsuiteOptions,
    NdjsonOptions,
    Options,
    SegmentedOptions,
)
from core.corpus.segmented import SegmentedReader
from core.corpus.write import write_conll
from core.corpus.write_bags import BAG_FORMATS, check_columns, write_crfsuite, write_ndjson
from core.corpus.write_brat import write_brat
from core.corpus.write_conllu import write_conllu
from core.corpus.write_segmented import write_segmented
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
    """How one format is read and written, and with which options."""

    options: type[Chosen]
    reader: Callable[[Chosen, Limits, bool], Reader]
    #: Raises what it has to say before it gives the first chunk.
    writer: Callable[[Corpus, Chosen], Iterator[bytes]]
    media_type: str = "text/plain; charset=utf-8"


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


def _crfsuite(_: CrfsuiteOptions, limits: Limits, labelled: bool) -> Reader:
    return CrfsuiteReader(max_line_bytes=limits.max_line_bytes, labelled=labelled)


def _ndjson(_: NdjsonOptions, limits: Limits, labelled: bool) -> Reader:
    return NdjsonReader(max_line_bytes=limits.max_line_bytes, labelled=labelled)


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
    "conll": Format(ConllOptions, _conll, lambda corpus, _: write_conll(corpus)),
    "crfsuite": Format(CrfsuiteOptions, _crfsuite, lambda corpus, _: write_crfsuite(corpus)),
    "ndjson": Format(NdjsonOptions, _ndjson, lambda corpus, _: write_ndjson(corpus), "application/x-ndjson"),
    "conllu": Format(
        ConlluOptions, _conllu, lambda corpus, options: write_conllu(corpus, options.columns, options.label)
    ),
    "segmented": Format(
        SegmentedOptions, _segmented, lambda corpus, options: write_segmented(corpus, options.tags)
    ),
    "brat": Format(BratOptions, _brat, lambda corpus, _: write_brat(corpus), "application/zip"),
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
    limits = Limits(max_line_bytes, max_text_bytes)
    return CorpusReader(_format(format).reader(chosen, limits, labelled and chosen.labelled), chosen)


def read(
    chunks: Iterable[bytes],
    format: str,  # noqa: A002
    *,
    max_line_bytes: int,
    max_text_bytes: int = 1 << 30,
    options: Mapping[str, object] | None = None,
) -> Corpus:
    """The corpus in `chunks`, which may be cut anywhere."""
    reading = reader(format, max_line_bytes=max_line_bytes, max_text_bytes=max_text_bytes, options=options)
    for chunk in chunks:
        reading.feed(chunk)
    return reading.finish()


def media_type(format: str) -> str:  # noqa: A002
    """What a corpus written in `format` is."""
    return _format(format).media_type


def write(
    corpus: Corpus,
    format: str,  # noqa: A002
    options: Mapping[str, object] | None = None,
) -> Iterator[bytes]:
    """The corpus in `format`, a chunk at a time, its labels in the coding that the options ask for."""
    chosen = parse_options(format, options or {})
    recoded = recode(corpus, chosen.labels, repair=chosen.repair)
    if format not in BAG_FORMATS:
        check_columns(recoded.corpus, format)
    return _format(format).writer(recoded.corpus, chosen)


def writing_options(
    own_format: str,
    own: Mapping[str, object],
    format: str,  # noqa: A002
    given: Mapping[str, object],
) -> dict[str, object]:
    """The options with which to write a corpus that was read in `own_format` with the options `own`.

    How it was read says how to write it too; its labels are already in the coding asked for then.
    """
    kept = {key: value for key, value in own.items() if key not in opts.LabelOptions.model_fields}
    options = {**(kept if format == own_format else {}), **given}
    parse_options(format, options)
    return options


def warm() -> None:
    """Compile, or load from the cache, the kernels of every reader."""
    conll.warm()
    conllu.warm()
    crfsuite.warm()
    named.warm()
    segmented.warm()


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
