"""Statistics of a corpus: labels, lengths, label faults, duplicates."""

from dataclasses import dataclass

import numpy as np

from tagsmith.core.corpus import sentence_hashes as hashing
from tagsmith.core.corpus.corpus import Column, Corpus
from tagsmith.core.corpus.labels import codings as label_codings
from tagsmith.core.corpus.labels import partial
from tagsmith.core.corpus.labels.codings import NOT_CHECKED, LabelFault, check_labels
from tagsmith.core.corpus.sentence_hashes import fold_column, sentence_hashes


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """Counts over one corpus, as plain values for JSON."""

    sentences: int
    tokens: int
    label_counts: dict[str, int]
    length_histogram: dict[str, int]  # sentences by length; text keys, as in JSON
    label_scheme: str | None  # IOB1, IOB2, BIOES, BILOU, BMES; None for plain classes and other codings
    bio_fault_count: int
    bio_faults: tuple[LabelFault, ...]  # the first `MAX_FAULT_PLACES`
    repaired_labels: int  # faults before the repair; 0 without repair
    duplicate_sentences: int  # equal to an earlier one in columns, attributes and labels
    conflicting_sentences: int  # equal to an earlier one in everything but the labels
    vocabulary_sizes: dict[str, int]  # distinct values per column; "attributes" for bags
    labelled_tokens: int  # tokens with exactly one label
    weighted_sentences: int  # sentences with a weight other than 1


def report(corpus: Corpus, repaired_labels: int = 0) -> CorpusReport:
    """Report on a corpus. `repaired_labels` is the number of labels that its reader repaired."""
    labels = corpus.labels
    lengths, sentences = np.unique(np.diff(corpus.offsets), return_counts=True)
    # The coding of labels that are left open is not known.
    checked = NOT_CHECKED if labels is None or corpus.partial else check_labels(labels, corpus.offsets)
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
        vocabulary_sizes=_vocabulary_sizes(corpus),
        labelled_tokens=_labelled_tokens(corpus),
        weighted_sentences=0 if corpus.weights is None else int(np.count_nonzero(corpus.weights != 1)),
    )


def _labelled_tokens(corpus: Corpus) -> int:
    if corpus.labels is None or not corpus.partial:
        return 0 if corpus.labels is None else corpus.tokens
    return sum(count for label, count in _counts(corpus.labels).items() if partial.is_single(label))


def _vocabulary_sizes(corpus: Corpus) -> dict[str, int]:
    sizes = {column.name: len(column.vocabulary) for column in corpus.every_column()}
    return sizes if corpus.bag is None else {"attributes": len(corpus.bag.vocabulary), **sizes}


def _counts(labels: Column) -> dict[str, int]:
    counts = np.bincount(labels.ids, minlength=len(labels.vocabulary)).tolist()
    return dict(zip(labels.vocabulary.strings(), counts, strict=True))


def _distinct(corpus: Corpus) -> tuple[int, int]:
    """Count the distinct sentences without and with their labels, by 64-bit hashes."""
    hashes = sentence_hashes(corpus)
    plain = int(np.unique(hashes).size)
    if corpus.labels is None:
        return plain, plain
    fold_column(corpus.labels.ids, corpus.offsets, hashes)
    return plain, int(np.unique(hashes).size)


def warm() -> None:
    """Compile the kernels of a report, or load them from the cache."""
    hashing.warm()
    label_codings.warm()
