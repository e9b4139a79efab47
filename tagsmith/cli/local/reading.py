"""Corpora and models from files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tagsmith.cli import inputs, recognition
from tagsmith.cli.errors import CommandError
from tagsmith.core.base.errors import Invalid
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.model.tagger import Tagger

#: As long as a server accepts by default.
MAX_LINE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ReadCorpus:
    """A corpus, the format that it was read in, and the number of labels that were repaired."""

    corpus: Corpus
    format: str
    repaired_labels: int


def read(path: Path, format: str | None, options: Mapping[str, str]) -> ReadCorpus:  # noqa: A002
    """Read a labelled file. Its format is recognised if it is not given."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder. Give a file.")
    if not path.exists() and str(path) != "-":
        raise CommandError(f"There is no file {path}.")
    reader = formats.reader(
        format or formats.AUTO,
        max_line_bytes=MAX_LINE_BYTES,
        max_text_bytes=recognition.MAX_DECODED_BYTES,
        options=dict(options),
    )
    try:
        with inputs.opened(path) as file:
            for block in recognition.decoded(file):
                reader.feed(block)
        corpus = reader.finish()
    except Invalid as error:
        raise Invalid(f"{path}: {error.message}", error.faults, code=error.code) from None
    return ReadCorpus(corpus, reader.format, reader.repaired_labels)


def tagger_of(path: Path) -> Tagger:
    """Open a model file of Tagsmith, CRFsuite, CRF++ (text) or Wapiti."""
    if not path.is_file():
        raise CommandError(
            f"There is no model file {path}. Train one: tagsmith train --local DATA --model {path}"
        )
    try:
        return Tagger.open(path)
    except Invalid as error:
        raise Invalid(f"{path}: {error.message}", error.faults, code=error.code) from None
