"""What a look at a corpus tells before anything is trained on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus import labels as label_codings
from core.corpus.arrays import Ids, Places
from core.corpus.corpus import Column, Corpus
from core.corpus.labels import NOT_CHECKED, LabelFault, check_labels
from core.jit import kernel, readonly

_FOLD = np.uint64(0x9FB21C651E98DF25)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """Counts over one corpus; plain values, ready for JSON."""

    sentences: int
    tokens: int
    label_counts: dict[str, int]
    length_histogram: dict[str, int]  # sentences by length; text keys, as JSON will have them anyway
    label_scheme: (
        str | None
    )  # IOB1, IOB2, BIOES, BILOU, BMES, or None where labels are plain classes or of another kind
    bio_fault_count: int
    bio_faults: tuple[LabelFault, ...]  # the first `MAX_FAULT_PLACES`
    repaired_labels: int  # faults that there were, where repair was asked for
    duplicate_sentences: int  # the same in every column as an earlier one
    conflicting_sentences: int  # the same but for the labels
    vocabulary_sizes: dict[str, int]  # distinct values by column


@kernel
def _fold_column(ids: Ids, offsets: Places, hashes: NDArray[np.uint64]) -> None:
    """Mix the ids of each sentence into its hash, in order."""
    for sentence in range(hashes.size):
        h = hashes[sentence] ^ np.uint64(offsets[sentence + 1] - offsets[sentence])
        for token in range(offsets[sentence], offsets[sentence + 1]):
            h = (h ^ np.uint64(ids[token])) * _FOLD
            h ^= h >> _SHIFT
        hashes[sentence] = h


def report(corpus: Corpus, repaired_labels: int = 0) -> CorpusReport:
    """Look at a corpus, of which so many labels were repaired before."""
    labels = corpus.labels
    lengths, sentences = np.unique(np.diff(corpus.offsets), return_counts=True)
    checked = check_labels(labels, corpus.offsets) if labels else NOT_CHECKED
    distinct, distinct_labelled = _distinct(corpus)
    return CorpusReport(
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        label_counts=_counts(labels) if labels else {},
        length_histogram={str(length): int(count) for length, count in zip(lengths, sentences, strict=True)},
        label_scheme=checked.scheme.upper() if checked.scheme else None,
        bio_fault_count=checked.fault_count,
        bio_faults=checked.faults,
        repaired_labels=repaired_labels,
        duplicate_sentences=corpus.sentences - distinct_labelled,
        conflicting_sentences=distinct_labelled - distinct,
        vocabulary_sizes={column.name: len(column.vocabulary) for column in corpus.every_column()},
    )


def _counts(labels: Column) -> dict[str, int]:
    counts = np.bincount(labels.ids, minlength=len(labels.vocabulary)).tolist()
    return dict(zip(labels.vocabulary.strings(), counts, strict=True))


def _distinct(corpus: Corpus) -> tuple[int, int]:
    """(distinct sentences by their attributes, by attributes and labels); 64-bit hashes stand for sentences."""
    hashes = np.zeros(corpus.sentences, np.uint64)
    for column in corpus.columns:
        _fold_column(column.ids, corpus.offsets, hashes)
    plain = int(np.unique(hashes).size)
    if corpus.labels is None:
        return plain, plain
    _fold_column(corpus.labels.ids, corpus.offsets, hashes)
    return plain, int(np.unique(hashes).size)


def warm() -> None:
    """Compile, or load from the cache, the kernels of this module."""
    empty = readonly(np.empty(0, np.int32), np.int32)
    offsets = readonly(np.zeros(1, np.int64), np.int64)
    _fold_column(empty, offsets, np.empty(0, np.uint64))
    label_codings.warm()
