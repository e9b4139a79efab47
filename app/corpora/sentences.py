"""The sentences of a stored corpus, for people to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np

from tagsmith.app.reading.stored import StoredText, StoredTexts, corpus_of
from tagsmith.core.corpus.corpus import Corpus
from tagsmith.core.corpus.sentences import Sentences
from tagsmith.core.evaluate.spans import spans_of
from tagsmith.core.store.corpora import CorpusRow
from tagsmith.core.store.paging import Page
from tagsmith.wire import CorpusSentence, CorpusSpan

#: Tokens of a sentence in a response. A file without blank lines is one sentence, which nobody reads as a whole.
MAX_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class SentenceQuery:
    """Which sentences to show: from number `offset` on, only those with a label or type, only faulty ones."""

    offset: int
    limit: int
    label: str | None
    faulty: bool


async def page(texts: StoredTexts, row: CorpusRow, query: SentenceQuery) -> Page[CorpusSentence]:
    """Read a page of sentences. The whole corpus is read."""
    faulty = [fault["sentence"] for fault in row.report.get("bio_faults", ())] if query.faulty else None
    return await texts.call(row, _page, query, faulty)


def sample(corpus: Corpus, count: int) -> list[CorpusSentence]:
    """Return the first sentences of a corpus."""
    return readable(corpus, range(min(count, corpus.sentences)))


def readable(corpus: Corpus, indices: "range | list[int]") -> list[CorpusSentence]:
    """Return sentences as they are shown."""
    sentences = Sentences(corpus)
    names = [] if corpus.labels is None else corpus.labels.vocabulary.strings()
    shown = []
    for index in indices:
        found = sentences.read(index, MAX_SHOWN)
        spans = [CorpusSpan.model_validate(span) for span in spans_of(found.labels, names)] if names else []
        shown.append(
            CorpusSentence(
                index=index,
                length=found.length,
                tokens=found.tokens,
                columns=found.columns,
                labels=found.labels,
                spans=spans,
                heads=found.heads,
                relations=found.relations,
            )
        )
    return shown


def _page(
    files: Sequence[IO[bytes]], source: StoredText, query: SentenceQuery, faulty: list[int] | None
) -> Page[CorpusSentence]:
    corpus = corpus_of(files[0], source)
    wanted = np.ones(corpus.sentences, np.bool_)
    wanted[: query.offset] = False
    if query.label is not None:
        wanted &= _with_label(corpus, query.label)
    if faulty is not None:
        marked = np.zeros(corpus.sentences, np.bool_)
        marked[faulty] = True
        wanted &= marked
    found = np.flatnonzero(wanted)[: query.limit + 1].tolist()
    more = len(found) > query.limit
    return Page(readable(corpus, found[: query.limit]), str(found[query.limit]) if more else None)


def _with_label(corpus: Corpus, label: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark the sentences with a relation or a label. A type finds its labels: `PER` finds `B-PER`."""
    column = corpus.labels if corpus.trees is None else corpus.trees.relations
    if column is None:
        return np.zeros(corpus.sentences, np.bool_)
    names = column.vocabulary.strings()
    types = names if corpus.trees else [name.partition("-")[2] for name in names]
    chosen = np.array([label in pair for pair in zip(names, types, strict=True)], np.bool_)
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen[column.ids])])
    marked: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.diff(counts[corpus.offsets]) > 0
    return marked
