"""Preview of features: the features of a sentence, and feature counts of a corpus."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from tagsmith.app.features.request import PreviewRequest
from tagsmith.app.reading.decoding import unpacked
from tagsmith.app.reading.stored import StoredText, corpus_of
from tagsmith.core.base.errors import Fault, Invalid, NotFound
from tagsmith.core.base.regex import limited
from tagsmith.core.features import preview
from tagsmith.core.features.lexicon.lexicon import Lexicon, known_kind, read_lexicon
from tagsmith.core.features.preview import PreviewCounts
from tagsmith.core.features.resolved import Features
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.features.templates.printing import print_crfpp, print_short, print_wapiti
from tagsmith.core.features.templates.template import Template
from tagsmith.core.store import corpora, lexicons
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.lexicons import LexiconRow

if TYPE_CHECKING:  # the process that reads uploads does without it
    from tagsmith.app.deps import Runtime

#: Counting runs in an API process while the client waits. Features of larger corpora are counted by training jobs.
MAX_CORPUS_TOKENS = 2_000_000
#: Each is an open file.
MAX_LEXICONS = 100
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
    arcs: list[tuple[int, int]]
    counts: PreviewCounts | None


@dataclass(frozen=True, slots=True)
class PreviewSources:
    """How the files of a preview are read: the texts of the lexicons, then that of the corpus if there is one."""

    lexicons: list[LexiconRow]
    corpus: StoredText | None
    max_line_bytes: int
    #: Whether the corpus has trees; None without a corpus.
    trees: bool | None = None


async def make(request: PreviewRequest, runtime: "Runtime") -> Preview:
    """Build a preview. The columns are those of the corpus, or of the sentence if no corpus is given."""
    uploads, texts = runtime.uploads, runtime.texts
    row = None if request.corpus is None else await uploads.in_thread(_row, runtime.database, request.corpus)
    columns = len(request.rows[0]) if row is None else row.columns
    trees = None if row is None else row.trees
    features = await uploads.in_thread(lambda: request.features.resolve(columns, trees=trees))
    _check_sentence(request.rows, features)
    needed = await uploads.in_thread(_lexicons, runtime.database, request.features)
    corpus = None if row is None else texts.source(row)
    sources = PreviewSources(needed, corpus, runtime.settings.max_line_bytes, trees)
    size_bytes = sum(lexicon.size_bytes for lexicon in needed) + (0 if row is None else row.size_bytes)
    async with AsyncExitStack() as stack:
        opened = [texts.opened(lexicons.blob_id, lexicon.id) for lexicon in needed]
        opened += [] if row is None else [texts.opened(corpora.blob_id, row.id)]
        files = [await stack.enter_async_context(each) for each in opened]
        return await uploads.sized(size_bytes, read_preview, files, request, columns, sources)


@limited()
def read_preview(
    files: Sequence[IO[bytes]], request: PreviewRequest, columns: int | Sequence[str], sources: PreviewSources
) -> Preview:
    """Build a preview from the texts in `files`. It is called with limited memory."""
    features = request.features.resolve(columns, trees=sources.trees)
    needed: dict[str, Lexicon] = {
        row.id: read_lexicon(known_kind(row.kind), unpacked(file), max_line_bytes=sources.max_line_bytes)
        for row, file in zip(sources.lexicons, files, strict=False)
    }
    sentence = preview.corpus_of([each[: features.columns] for each in request.rows], features.names)
    corpus = None if sources.corpus is None else corpus_of(files[-1], sources.corpus)
    return Preview(
        columns=features.columns,
        templates=Printed(
            _expressed(print_crfpp, features.templates),
            _expressed(print_wapiti, features.templates),
            _expressed(print_short, features.templates),
        ),
        edges=features.edges,
        features=preview.names(features, sentence, needed),
        arcs=_arcs(sentence.tokens) if features.structure == "tree" else [],
        counts=None if corpus is None else preview.count(features, corpus, needed),
    )


def _arcs(words: int) -> list[tuple[int, int]]:
    """Return head and modifier of each entry of the features of trees, as `preview.names` orders them."""
    return [(head, word) for word in range(1, words + 1) for head in range(words + 1) if head != word]


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


def _lexicons(database: Database, spec: FeatureSpec) -> list[LexiconRow]:
    """Return the lexicons that the features need, each once."""
    found: dict[str, LexiconRow] = {}
    for name, column in spec.lexicons.items():
        lexicon_id = column.lexicon_id or ""
        try:
            with database.read() as conn:
                found[lexicon_id] = lexicons.get(conn, lexicon_id)
        except NotFound as error:
            fault = Fault(
                "The lexicon does not exist. Upload it first.", pointer=f"/features/derived/{name}/lexicon"
            )
            raise Invalid(error.message, [fault], code=error.code) from None
    if len(found) > MAX_LEXICONS:
        fault = Fault(f"A preview uses at most {MAX_LEXICONS} lexicons.", pointer="/features/derived")
        raise Invalid("The features need too many lexicons.", [fault], code="preview_too_large")
    return list(found.values())


def _check_sentence(rows: list[list[str]], features: Features) -> None:
    if len(rows[0]) < features.columns:
        reason = f"The rows have {len(rows[0])} columns and the features need {features.columns}. Add the missing ones."
        fault = Fault(reason, pointer="/sentence")
        raise Invalid("The sentence does not fit the features.", [fault], code="missing_column")
    longest = max(len(value) for row in rows for value in row)
    pieces = sum(len(template.slots) + 1 for template in features.templates)
    characters = pieces * max(longest, 8) + sum(bag.most_characters(longest) for bag in features.bags)
    if len(rows) * characters > MAX_CHARACTERS:
        fault = Fault("Send a shorter sentence, shorter values or fewer templates.", pointer="/sentence")
        raise Invalid("The preview would be too large.", [fault], code="preview_too_large")
