"""What a look at a corpus tells before anything is trained on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus.arrays import Ids, Places
from core.corpus.corpus import Column, Corpus
from core.jit import kernel, readonly

#: Places named in full; the count goes on.
MAX_FAULT_PLACES = 100

_OUT, _BEGIN, _INSIDE, _END, _SINGLE = range(5)
_TAG_CODES = {"B": _BEGIN, "I": _INSIDE, "M": _INSIDE, "E": _END, "S": _SINGLE}

# What a label may follow, by scheme.
_IOB1, _IOB2, _BIOES = range(3)
_SCHEME_NAMES = {_IOB1: "IOB1", _IOB2: "IOB2", _BIOES: "BIOES"}

_FOLD = np.uint64(0x9FB21C651E98DF25)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class LabelFault:
    """A label that cannot stand where it does; sentence and token count from 0."""

    sentence: int
    token: int
    label: str
    previous: str | None  # None at the start of a sentence


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """Counts over one corpus; plain values, ready for JSON."""

    sentences: int
    tokens: int
    label_counts: dict[str, int]
    length_histogram: dict[str, int]  # sentences by length; text keys, as JSON will have them anyway
    label_scheme: str | None  # IOB1, IOB2, BIOES, or None where labels are plain classes or of another kind
    bio_fault_count: int
    bio_faults: tuple[LabelFault, ...]  # the first `MAX_FAULT_PLACES`
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


@kernel
def _label_faults(
    ids: Ids, offsets: Places, tags: Ids, types: Ids, scheme: int, places: NDArray[np.int64]
) -> int:
    """Count labels that break the scheme; the first ones go into `places` as (sentence, token in it)."""
    count = 0
    for sentence in range(offsets.size - 1):
        previous_tag, previous_type = _OUT, -1
        for token in range(offsets[sentence], offsets[sentence + 1]):
            tag, kind = tags[ids[token]], types[ids[token]]
            opened = previous_tag in (_BEGIN, _INSIDE)
            goes_on = tag in (_INSIDE, _END)
            continued = opened and kind == previous_type
            if scheme == _IOB1:
                # B only where a chunk of the same type has just ended.
                wrong = tag == _BEGIN and not continued
            elif scheme == _IOB2:
                wrong = tag == _INSIDE and not continued
            else:
                wrong = goes_on != opened or (goes_on and not continued)
            last = token + 1 == offsets[sentence + 1]
            unfinished = scheme == _BIOES and last and tag in (_BEGIN, _INSIDE)
            if wrong or unfinished:
                if count < places.shape[0]:
                    places[count, 0] = sentence
                    places[count, 1] = token - offsets[sentence]
                count += 1
            previous_tag, previous_type = tag, kind
    return count


def report(corpus: Corpus) -> CorpusReport:
    """Look at a corpus."""
    labels = corpus.labels
    lengths, sentences = np.unique(np.diff(corpus.offsets), return_counts=True)
    scheme, fault_count, faults = _check_labels(labels, corpus.offsets) if labels else (None, 0, ())
    distinct, distinct_labelled = _distinct(corpus)
    return CorpusReport(
        sentences=corpus.sentences,
        tokens=corpus.tokens,
        label_counts=_counts(labels) if labels else {},
        length_histogram={str(length): int(count) for length, count in zip(lengths, sentences, strict=True)},
        label_scheme=scheme,
        bio_fault_count=fault_count,
        bio_faults=faults,
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


def _check_labels(labels: Column, offsets: Places) -> tuple[str | None, int, tuple[LabelFault, ...]]:
    """(scheme, number of faults, the first of them)."""
    names = labels.vocabulary.strings()
    parts = [name.partition("-") for name in names]
    found = {tag for tag, _, _ in parts}
    if not found <= {"O", *_TAG_CODES} or not found & {"B", "I"}:
        return None, 0, ()
    tags = np.array([_TAG_CODES.get(tag, _OUT) for tag, _, _ in parts], np.int32)
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(kind for _, _, kind in parts))}
    types = np.array([kinds[kind] for _, _, kind in parts], np.int32)

    def check(scheme: int) -> tuple[str, int, tuple[LabelFault, ...]]:
        places = np.empty((MAX_FAULT_PLACES, 2), np.int64)
        count = _label_faults(
            labels.ids, offsets, readonly(tags, np.int32), readonly(types, np.int32), scheme, places
        )
        chosen = places[: min(count, MAX_FAULT_PLACES)].tolist()
        return _SCHEME_NAMES[scheme], count, _described(labels.ids, offsets, names, chosen)

    if found & {"E", "S", "M"}:
        # I and E without B or S are the IOE schemes, in which any label may follow any.
        return check(_BIOES) if found & {"B", "S"} else (None, 0, ())
    as_iob2 = check(_IOB2)
    if as_iob2[1]:
        as_iob1 = check(_IOB1)
        return as_iob1 if as_iob1[1] == 0 else as_iob2
    return as_iob2


def _described(
    ids: Ids, offsets: Places, names: Sequence[str], places: list[list[int]]
) -> tuple[LabelFault, ...]:
    faults = []
    for sentence, token in places:
        at = int(offsets[sentence]) + token
        previous = names[ids[at - 1]] if token else None
        faults.append(LabelFault(sentence, token, names[ids[at]], previous))
    return tuple(faults)


def warm() -> None:
    """Compile, or load from the cache, the kernels of this module."""
    empty = readonly(np.empty(0, np.int32), np.int32)
    offsets = readonly(np.zeros(1, np.int64), np.int64)
    _fold_column(empty, offsets, np.empty(0, np.uint64))
    _label_faults(empty, offsets, empty, empty, _IOB2, np.empty((0, 2), np.int64))
