"""Find the formats, and read and write corpora by the name of a format.

A format is a module of this package with a constant `FORMAT` (see `base.Format`).
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.corpus import foreign, formats
from tagsmith.core.corpus.archive import ZIP_MAGIC
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats.base import Format, LabelOptions, Limits, Options, Reader, parse
from tagsmith.core.corpus.formats.recognition import HEAD_BYTES, Head
from tagsmith.core.corpus.labels import partial
from tagsmith.core.corpus.labels.codings import recode
from tagsmith.core.corpus.text import tokenizer

#: In place of the name of a format: recognise it by the content.
AUTO = "auto"
#: The format of texts that no format recognises. Its messages describe what is wrong with the lines.
_FALLBACK = "conll"
#: Other names of formats.
_ALIASES = {"jsonl": "ndjson"}
#: How readers begin the reason of a fault in the encoding.
NOT_UTF8 = "not UTF-8"


class CorpusReader:
    """Reads a text and converts the labels to the chosen coding.

    The format is given, or recognised when enough of the text has arrived.
    """

    def __init__(self, format: str, values: Mapping[str, object], limits: Limits) -> None:  # noqa: A002
        self._values = values
        self._limits = limits
        self._head = bytearray()
        self._automatic = format == AUTO
        self._reader: Reader | None = None
        #: The name of the format, and its options; of `auto`, known from `finish()` on.
        self.format = format
        self.options = Options()
        #: The number of repaired labels; set by `finish()`.
        self.repaired_labels = 0
        if format != AUTO:
            self._choose(format)

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes. Chunks may end anywhere."""
        with self._explained():
            if self._reader is not None:
                self._reader.feed(chunk)
                return
            self._head += chunk
            if len(self._head) >= HEAD_BYTES:
                self._begin(whole=False)

    def finish(self) -> Corpus:
        """Return the corpus."""
        with self._explained():
            reader = self._reader or self._begin(whole=True)
            corpus = reader.finish()
        if self.options.partial and corpus.labels is not None:
            partial.check(corpus.labels.vocabulary.strings(), corpus.labels.ids, corpus.offsets)
            corpus = replace(corpus, partial=True)
        recoded = recode(corpus, self.options.labels, repair=self.options.repair)
        self.repaired_labels = recoded.repaired
        if self.options.tokenizer is None:
            return recoded.corpus
        return replace(recoded.corpus, tokenizer=self.options.tokenizer)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in errors of a text that it is in another encoding, or that its format was not given."""
        try:
            yield
        except Invalid as error:
            if error.code != "invalid_corpus":
                raise
            first = error.faults[0]
            if first.reason.startswith(NOT_UTF8):
                message = "The corpus is not UTF-8 text. If it is Latin-1, convert it: iconv -f LATIN1 -t UTF-8 FILE"
                raise Invalid(message, [first], code=error.code) from None
            if not self._automatic:
                raise
            others = " or ".join(name for name in known_formats() if name != self.format)
            message = f"{error.message} It was read as {self.format}. If it is {others}, name the format."
            raise Invalid(message, error.faults, code=error.code) from None

    def _begin(self, *, whole: bool) -> Reader:
        """Check the beginning of the text, recognise its format if none is given, and start to read."""
        head = Head(bytes(self._head), whole)
        self._head.clear()
        if not (is_archive(self.format) and head.data.startswith(ZIP_MAGIC)):
            foreign.refuse_binary(head.data)
        if self._automatic:
            found = _recognised(head)
            if found is None:
                foreign.refuse_other_text(head)
            self._choose(found or _FALLBACK)
        entry = _format(self.format)
        self.options = entry.resolve(self.options, head)
        self._reader = entry.reader(self.options, self._limits)
        self._reader.feed(head.data)
        return self._reader

    def _choose(self, format: str) -> None:  # noqa: A002
        self.format, self.options = _format(format).name, parse_options(format, self._values)


def recognised(head: Head) -> str:
    """Return the name of the format that a text is most likely in."""
    return _recognised(head) or _FALLBACK


def _recognised(head: Head) -> str | None:
    return next((name for name, entry in _formats().items() if entry.recognises(head)), None)


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
    values = {**(options or {}), **({} if labelled else {"labelled": False})}
    return CorpusReader(format, values, Limits(max_line_bytes, max_text_bytes))


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


def holds_trees(format: str) -> bool:  # noqa: A002
    """Whether `format` can hold heads and relations."""
    return _format(format).holds_trees


def is_archive(format: str) -> bool:  # noqa: A002
    """Whether the texts of `format` are zip files."""
    return format != AUTO and _format(format).media_type == "application/zip"


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
    if recoded.corpus.trees is not None and not entry.holds_trees:
        raise _no_trees(format)
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
    entry = _format(format)
    given_for_reading = sorted(entry.reading_options & given.keys())
    if given_for_reading:
        faults = [
            Fault("This option is for uploads only. Remove it.", parameter=name) for name in given_for_reading
        ]
        raise Invalid("Some options are not for writing. Remove them.", faults, code="invalid_options")
    not_kept = {*LabelOptions.model_fields, *entry.reading_options}
    kept = {key: value for key, value in own.items() if key not in not_kept}
    options = {**(kept if entry.name == own_format else {}), **given}
    parse_options(format, options)
    return options


def warm() -> None:
    """Compile the kernels of every format and of the tokenizers, or load them from the cache."""
    tokenizer.warm()
    for entry in _formats().values():
        entry.warm()


def _format(name: str) -> Format[Any]:
    entry = _formats().get(_ALIASES.get(name, name))
    if entry is None:
        known = ", ".join(known_formats())
        raise Invalid(
            f"Format {name!r} is unknown. Use one of: {known}.",
            [Fault(f"The format is unknown. Use one of: {known}.")],
            code="unknown_format",
        )
    return entry


def _no_trees(format_name: str) -> Invalid:
    suitable = " or ".join(name for name, entry in _formats().items() if entry.holds_trees)
    return Invalid(
        f"Format {format_name} cannot hold dependency trees. Use {suitable}.",
        [Fault(f"{format_name} has no heads and relations.")],
        code="unwritable_value",
    )


def _columns_only(format_name: str) -> Invalid:
    suitable = " or ".join(name for name, entry in _formats().items() if entry.holds_bags)
    return Invalid(
        f"Format {format_name} cannot hold tokens with named attributes. Use {suitable}.",
        [Fault(f"{format_name} holds columns only.")],
        code="unwritable_value",
    )
