"""Find the formats, and read and write corpora by the name of a format.

A format is a module of this package with a constant `FORMAT` (see `base.Format`).
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus import formats
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.base import Format, LabelOptions, Limits, Options, Reader, parse
from tagsmith.core.corpus.labels.codings import recode
from tagsmith.core.corpus.text import tokenizer


class CorpusReader:
    """Reads a format and converts the labels to the chosen coding."""

    def __init__(self, reader: Reader, options: Options) -> None:
        self._reader = reader
        self._options = options
        #: The number of repaired labels; set by `finish()`.
        self.repaired_labels = 0

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes. Chunks may end anywhere."""
        self._reader.feed(chunk)

    def finish(self) -> Corpus:
        """Return the corpus."""
        recoded = recode(self._reader.finish(), self._options.labels, repair=self._options.repair)
        self.repaired_labels = recoded.repaired
        if self._options.tokenizer is None:
            return recoded.corpus
        return replace(recoded.corpus, tokenizer=self._options.tokenizer)


@cache
def _formats() -> dict[str, Format[Any]]:
    """All formats by name, in their fixed order."""
    modules = [
        importlib.import_module(f"{formats.__name__}.{module.name}")
        for module in pkgutil.iter_modules(formats.__path__)
    ]
    found: list[Format[Any]] = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    found.sort(key=lambda entry: (entry.order, entry.name))
    by_name = {entry.name: entry for entry in found}
    if len(by_name) < len(found):
        raise RuntimeError("two formats have the same name")
    return by_name


def known_formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(_formats())


def option_models() -> dict[str, type[Options]]:
    """Return the options class of each format."""
    return {name: entry.options for name, entry in _formats().items()}


def parse_options(format: str, values: Mapping[str, object]) -> Options:  # noqa: A002
    """Return the options of `format`, from a query or from the store."""
    options: Options = parse(_format(format).options, values, format)
    return options


def reader(
    format: str,  # noqa: A002
    *,
    max_line_bytes: int,
    max_text_bytes: int = 1 << 30,
    labelled: bool = True,
    options: Mapping[str, object] | None = None,
) -> CorpusReader:
    """Return a reader of `format`. With `labelled=False` it reads unlabelled text, whatever the options say."""
    chosen = parse_options(format, options or {})
    if not labelled:
        chosen = chosen.model_copy(update={"labelled": False})
    return CorpusReader(_format(format).reader(chosen, Limits(max_line_bytes, max_text_bytes)), chosen)


def read(
    chunks: Iterable[bytes],
    format: str,  # noqa: A002
    *,
    max_line_bytes: int,
    max_text_bytes: int = 1 << 30,
    options: Mapping[str, object] | None = None,
) -> Corpus:
    """Read a corpus from `chunks`, which may end anywhere."""
    reading = reader(format, max_line_bytes=max_line_bytes, max_text_bytes=max_text_bytes, options=options)
    for chunk in chunks:
        reading.feed(chunk)
    return reading.finish()


def media_type(format: str) -> str:  # noqa: A002
    """Return the media type of a corpus in `format`."""
    return _format(format).media_type


def write(
    corpus: Corpus,
    format: str,  # noqa: A002
    options: Mapping[str, object] | None = None,
) -> Iterator[bytes]:
    """Write a corpus in `format`, in chunks, with its labels in the coding that the options name."""
    entry, chosen = _format(format), parse_options(format, options or {})
    recoded = recode(corpus, chosen.labels, repair=chosen.repair)
    if recoded.corpus.bag is not None and not entry.holds_bags:
        raise _columns_only(format)
    return entry.writer(recoded.corpus, chosen)


def writing_options(
    own_format: str,
    own: Mapping[str, object],
    format: str,  # noqa: A002
    given: Mapping[str, object],
) -> dict[str, object]:
    """Return the options to write a corpus that was read in `own_format` with the options `own`.

    In its own format it is written with the options it was read with, except `labels` and `repair`: its labels are
    already converted.
    """
    kept = {key: value for key, value in own.items() if key not in LabelOptions.model_fields}
    options = {**(kept if format == own_format else {}), **given}
    parse_options(format, options)
    return options


def warm() -> None:
    """Compile the kernels of every format and of the tokenizers, or load them from the cache."""
    tokenizer.warm()
    for entry in _formats().values():
        entry.warm()


def _format(name: str) -> Format[Any]:
    entry = _formats().get(name)
    if entry is None:
        known = ", ".join(known_formats())
        raise Invalid(
            f"Format {name!r} is unknown. Use one of: {known}.",
            [Fault(f"unknown format; known: {known}")],
            code="unknown_format",
        )
    return entry


def _columns_only(format_name: str) -> Invalid:
    suitable = " or ".join(name for name, entry in _formats().items() if entry.holds_bags)
    return Invalid(
        f"Format {format_name} cannot hold tokens with named attributes. Use {suitable}.",
        [Fault(f"{format_name} holds columns only")],
        code="unwritable_value",
    )
