"""Preview of features: the features of a sentence, and feature counts of a corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tagsmith.app.features.request import PreviewRequest
from tagsmith.core.base.errors import Fault, Invalid, NotFound
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.features import preview
from tagsmith.core.features.lexicon.lexicon import Lexicon, Lexicons
from tagsmith.core.features.preview import PreviewCounts
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.printing import print_crfpp, print_short, print_wapiti
from tagsmith.core.features.templates.template import Template
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import corpora, lexicons
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database

#: Counting runs in an API process while the client waits. Features of larger corpora are counted by training jobs.
MAX_CORPUS_TOKENS = 2_000_000
#: Maximum number of characters of all feature names in a response. Nobody reads a longer response.
MAX_CHARACTERS = 20_000_000


@dataclass(frozen=True, slots=True)
class Printed:
    """The templates in each syntax that can express them; None in the others."""

    crfpp: str | None
    wapiti: str | None
    short: list[Any] | None


@dataclass(frozen=True, slots=True)
class Preview:
    """The features of a sentence and, if the request names a corpus, its feature counts."""

    columns: int
    templates: Printed
    edges: bool
    features: list[list[str]]
    counts: PreviewCounts | None


def make(request: PreviewRequest, database: Database, settings: Settings) -> Preview:
    """Build a preview. The columns are those of the corpus, or of the sentence if no corpus is given."""
    rows = request.rows
    row = None if request.corpus is None else _row(database, request.corpus)
    features = request.features.resolve(len(rows[0]) if row is None else row.columns)
    _check_sentence(rows, features)
    needed = _lexicons(database, request.features, settings)
    sentence = preview.corpus_of([each[: features.columns] for each in rows], features.names)
    return Preview(
        columns=features.columns,
        templates=Printed(
            _expressed(print_crfpp, features.templates),
            _expressed(print_wapiti, features.templates),
            _expressed(print_short, features.templates),
        ),
        edges=features.edges,
        features=preview.names(features, sentence, needed),
        counts=None if row is None else preview.count(features, _corpus(database, row, settings), needed),
    )


def _expressed(express: Callable[[Sequence[Template]], Any], templates: Sequence[Template]) -> Any:
    try:
        return express(templates)
    except Invalid:
        return None


def _row(database: Database, corpus_id: str) -> CorpusRow:
    try:
        with database.read() as conn:
            row = corpora.get(conn, corpus_id)
    except NotFound as error:
        fault = Fault(error.message, pointer="/corpus")
        raise Invalid(error.message, [fault], code="corpus_not_found") from None
    if row.tokens > MAX_CORPUS_TOKENS:
        reason = (
            f"The corpus has {row.tokens:,} tokens, and a preview counts at most {MAX_CORPUS_TOKENS:,}. "
            "Use a smaller corpus."
        )
        fault = Fault(reason, pointer="/corpus")
        raise Invalid("The corpus is too large to count.", [fault], code="corpus_too_large")
    return row


def _corpus(database: Database, row: CorpusRow, settings: Settings) -> Corpus:
    limits = {"max_line_bytes": settings.max_line_bytes, "max_text_bytes": settings.max_corpus_bytes}
    return corpora.load(database, row, **limits)


def _lexicons(database: Database, spec: FeatureSpec, settings: Settings) -> Lexicons:
    found: dict[str, Lexicon] = {}
    for name, column in spec.lexicons.items():
        lexicon_id = column.lexicon_id or ""
        try:
            found[lexicon_id] = lexicons.load(database, lexicon_id, settings.max_line_bytes)
        except NotFound as error:
            fault = Fault(
                "The lexicon does not exist. Upload it first.", pointer=f"/features/derived/{name}/lexicon"
            )
            raise Invalid(error.message, [fault], code=error.code) from None
    return found


def _check_sentence(rows: list[list[str]], features: Features) -> None:
    if len(rows[0]) < features.columns:
        reason = f"The rows have {len(rows[0])} columns and the features need {features.columns}. Add the missing ones."
        fault = Fault(reason, pointer="/sentence")
        raise Invalid("The sentence does not fit the features.", [fault], code="missing_column")
    longest = max(len(value) for row in rows for value in row)
    pieces = sum(len(template.slots) + 1 for template in features.templates)
    if len(rows) * pieces * max(longest, 8) > MAX_CHARACTERS:
        fault = Fault("Send a shorter sentence, shorter values or fewer templates.", pointer="/sentence")
        raise Invalid("The preview would be too large.", [fault], code="preview_too_large")
