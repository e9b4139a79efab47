"""Statistics of a corpus: labels or trees, lengths, label faults, duplicates."""

from dataclasses import dataclass

import numpy as np

from tagsmith.core.base.arrays import Places
from tagsmith.core.corpus import sentence_hashes as hashing
from tagsmith.core.corpus import trees as tree_kernels
from tagsmith.core.corpus.corpus import Column, Corpus, Trees
from tagsmith.core.corpus.labels import codings as label_codings
from tagsmith.core.corpus.labels import partial
from tagsmith.core.corpus.labels.codings import NOT_CHECKED, LabelFault, check_labels
from tagsmith.core.corpus.sentence_hashes import fold_column, sentence_hashes


@dataclass(frozen=True, slots=True)
class TreeReport:
    """Counts over the dependency trees of a corpus, as plain values for JSON."""

    relation_counts: dict[str, int]
    arc_lengths: dict[str, int]  # arcs by the distance of their words, without those of roots; text keys
    nonprojective_sentences: int  # with crossing arcs
    several_roots_sentences: int


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
    duplicate_sentences: int  # equal to an earlier one in columns, attributes and labels or trees
    conflicting_sentences: int  # equal to an earlier one in everything but the labels or trees
    vocabulary_sizes: dict[str, int]  # distinct values per column; "attributes" for bags
    labelled_tokens: int  # tokens with exactly one label, or with a head
    weighted_sentences: int  # sentences with a weight other than 1
    trees: TreeReport | None = None  # None without trees


def report(corpus: Corpus, repaired_labels: int = 0) -> CorpusReport:
    """Report on a corpus. `repaired_labels` is the number of labels that its reader repaired."""
    labels = corpus.labels
    # The coding of labels that are left open is not known.
    checked = NOT_CHECKED if labels is None or corpus.partial else check_labels(labels, corpus.offsets)
    distinct, distinct_labelled = _distinct(corpus)
    return CorpusReport(
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        label_counts=_counts(labels) if labels else {},
        length_histogram=_histogram(np.diff(corpus.offsets)),
        label_scheme=checked.scheme.upper() if checked.scheme else None,
        bio_fault_count=checked.fault_count,
        bio_faults=checked.faults,
        repaired_labels=repaired_labels,
        duplicate_sentences=corpus.sentences - distinct_labelled,
        conflicting_sentences=distinct_labelled - distinct,
        vocabulary_sizes=_vocabulary_sizes(corpus),
        labelled_tokens=_labelled_tokens(corpus),
        weighted_sentences=0 if corpus.weights is None else int(np.count_nonzero(corpus.weights != 1)),
        trees=None if corpus.trees is None else _tree_report(corpus.trees, corpus.offsets),
    )


def _labelled_tokens(corpus: Corpus) -> int:
    if corpus.labels is None or not corpus.partial:
        return corpus.tokens if corpus.labelled else 0
    return sum(count for label, count in _counts(corpus.labels).items() if partial.is_single(label))


def _tree_report(trees: Trees, offsets: Places) -> TreeReport:
    arcs = trees.heads > 0
    return TreeReport(
        relation_counts=_counts(trees.relations),
        arc_lengths=_histogram(np.abs(tree_kernels.word_numbers(offsets) - trees.heads)[arcs]),
        nonprojective_sentences=int(np.count_nonzero(tree_kernels.nonprojective(trees.heads, offsets))),
        several_roots_sentences=int(np.count_nonzero(tree_kernels.root_counts(trees.heads, offsets) > 1)),
    )


def _histogram(values: Places) -> dict[str, int]:
    """Count equal values. The keys are text, as in JSON."""
    found, counts = np.unique(values, return_counts=True)
    return {str(value): int(count) for value, count in zip(found, counts, strict=True)}


def _vocabulary_sizes(corpus: Corpus) -> dict[str, int]:
    sizes = {column.name: len(column.vocabulary) for column in corpus.every_column()}
    return sizes if corpus.bag is None else {"attributes": len(corpus.bag.vocabulary), **sizes}


def _counts(labels: Column) -> dict[str, int]:
    counts = np.bincount(labels.ids, minlength=len(labels.vocabulary)).tolist()
    return dict(zip(labels.vocabulary.strings(), counts, strict=True))


def _distinct(corpus: Corpus) -> tuple[int, int]:
    """Count the distinct sentences without and with their labels or trees, by 64-bit hashes."""
    hashes = sentence_hashes(corpus)
    plain = int(np.unique(hashes).size)
    if not corpus.labelled:
        return plain, plain
    if corpus.trees is not None:
        fold_column(corpus.trees.heads, corpus.offsets, hashes)
    fold_column(corpus.every_column()[-1].ids, corpus.offsets, hashes)
    return plain, int(np.unique(hashes).size)


def warm() -> None:
    """Compile the kernels of a report, or load them from the cache."""
    hashing.warm()
    label_codings.warm()
    tree_kernels.warm()
