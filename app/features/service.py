"""What can be done with features before training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.features.schemas import PreviewRequest
from core.corpus import formats
from core.corpus.corpus import Corpus
from core.errors import Fault, Invalid, NotFound
from core.features import preview
from core.features.matching import Lexicons
from core.features.preview import Counts
from core.features.printing import print_crfpp, print_short, print_wapiti
from core.features.settled import Features
from core.features.spec import FeatureSpec
from core.features.template import Template
from core.lexicon.lexicon import Lexicon
from core.settings import Settings
from core.store import blobs, corpora, lexicons
from core.store.corpora import CorpusRow
from core.store.engine import Database

#: Larger corpora are counted by the job that trains on them: here a request waits, in the memory of an API process.
MAX_CORPUS_TOKENS = 2_000_000
#: Characters of all names of an answer, at most: beyond that nobody reads it.
MAX_CHARACTERS = 20_000_000


@dataclass(frozen=True, slots=True)
class Printed:
    """The templates in each syntax that can say them."""

    crfpp: str | None
    wapiti: str | None
    short: list[Any] | None


@dataclass(frozen=True, slots=True)
class Preview:
    """The features of a sentence, and the counts of a corpus if one was named."""

    columns: int
    templates: Printed
    edges: bool
    features: list[list[str]]
    counts: Counts | None


def make(request: PreviewRequest, database: Database, settings: Settings) -> Preview:
    """Settle the features for the columns of the corpus, or else of the sentence, and apply them."""
    rows = request.rows
    row = None if request.corpus is None else _row(database, request.corpus)
    features = request.features.resolve(len(rows[0]) if row is None else row.columns)
    _check_sentence(rows, features)
    needed = _lexicons(database, request.features, settings)
    sentence = preview.corpus_of([each[: features.columns] for each in rows], features.names)
    return Preview(
        columns=features.columns,
        templates=Printed(
            _said(print_crfpp, features.templates),
            _said(print_wapiti, features.templates),
            _said(print_short, features.templates),
        ),
        edges=features.edges,
        features=preview.names(features, sentence, needed),
        counts=None if row is None else preview.count(features, _corpus(database, row, settings), needed),
    )


def _said(say: Callable[[Sequence[Template]], Any], templates: Sequence[Template]) -> Any:
    try:
        return say(templates)
    except Invalid:
        return None


def _row(database: Database, corpus_id: str) -> CorpusRow:
    try:
        with database.read() as conn:
            row = corpora.get(conn, corpus_id)
    except NotFound as error:
        raise Invalid(
            error.message, [Fault("unknown corpus", pointer="/corpus")], code="corpus_not_found"
        ) from None
    if row.tokens > MAX_CORPUS_TOKENS:
        fault = Fault(f"{row.tokens} tokens; at most {MAX_CORPUS_TOKENS} are counted here", pointer="/corpus")
        raise Invalid("The corpus is too large to count.", [fault], code="corpus_too_large")
    return row


def _corpus(database: Database, row: CorpusRow, settings: Settings) -> Corpus:
    with database.read() as conn:
        blob_id = corpora.blob_id(conn, row.id)
    reader = formats.reader(row.format, max_line_bytes=settings.max_line_bytes, options=row.options)
    for chunk in blobs.stream(database, blob_id):
        reader.feed(chunk)
    return reader.finish()


def _lexicons(database: Database, spec: FeatureSpec, settings: Settings) -> Lexicons:
    found: dict[str, Lexicon] = {}
    for name, column in spec.lexicons.items():
        lexicon_id = column.lexicon_id or ""
        try:
            found[lexicon_id] = lexicons.load(database, lexicon_id, settings.max_line_bytes)
        except NotFound as error:
            fault = Fault("unknown lexicon", pointer=f"/features/derived/{name}/lexicon")
            raise Invalid(error.message, [fault], code=error.code) from None
    return found


def _check_sentence(rows: list[list[str]], features: Features) -> None:
    if len(rows[0]) < features.columns:
        fault = Fault(
            f"rows have {len(rows[0])} columns; the features need {features.columns}", pointer="/sentence"
        )
        raise Invalid("The sentence does not fit the features.", [fault], code="missing_column")
    longest = max(len(value) for row in rows for value in row)
    pieces = sum(len(template.slots) + 1 for template in features.templates)
    if len(rows) * pieces * max(longest, 8) > MAX_CHARACTERS:
        fault = Fault("so many templates of so long values are too many to show", pointer="/sentence")
        raise Invalid("The preview would be too large.", [fault], code="preview_too_large")
