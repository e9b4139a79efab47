"""Scores of dependency trees.

UAS is the share of words with the right head, LAS the share of words with the right head and relation.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.arrays import Ids, Places
from tagsmith.core.corpus.corpus import Column, Trees
from tagsmith.core.evaluate.spans import SpanScore

#: The relation of words whose relation is not known.
UNKNOWN = "_"


@dataclass(frozen=True, slots=True)
class ArcScore:
    """Scores of the arcs of one relation, in percent, and the counts they are computed from.

    An arc is correct if its head and its relation are.
    """

    precision: float
    recall: float
    f1: float
    correct: int
    gold: int
    predicted: int
    heads_correct: int  # of the gold arcs, whatever their predicted relation


@dataclass(frozen=True, slots=True)
class TreeMetrics:
    """Agreement of predicted trees with gold trees, in percent.

    Without usable relations there is no LAS, and `by_type` is empty. A sentence is correct if all of its heads are and,
    with usable relations, its relations too.
    """

    uas: float
    las: float | None
    uas_without_punctuation: float
    las_without_punctuation: float | None
    tokens: int
    heads_correct: int
    arcs_correct: int | None  # head and relation
    words: int  # tokens that are not punctuation
    words_heads_correct: int
    words_arcs_correct: int | None
    sentences: int
    sentences_correct: int
    by_type: dict[str, ArcScore]  # by relation
    #: The score that passes and runs are compared by.
    score: Literal["uas"] = "uas"

    @property
    def value(self) -> float:
        """The value of that score."""
        return self.uas

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def evaluate(gold: Trees, predicted: Trees, offsets: Places, punctuation: NDArray[np.bool_]) -> TreeMetrics:
    """Score `predicted` against `gold`. `punctuation` marks the tokens that are left out of half of the scores."""
    _check(gold, predicted, offsets, punctuation)
    heads = gold.heads == predicted.heads
    names, relation, other = numbered_together(gold.relations, predicted.relations)
    usable = usable_relations(gold.relations)
    arcs = heads & (relation == other)
    words = ~punctuation
    right = np.concatenate([np.zeros(1, np.int64), np.cumsum(arcs if usable else heads)])
    lengths = np.diff(offsets)
    return TreeMetrics(
        uas=_percent(heads),
        las=_percent(arcs) if usable else None,
        uas_without_punctuation=_percent(heads[words]),
        las_without_punctuation=_percent(arcs[words]) if usable else None,
        tokens=heads.size,
        heads_correct=_count(heads),
        arcs_correct=_count(arcs) if usable else None,
        words=_count(words),
        words_heads_correct=_count(heads[words]),
        words_arcs_correct=_count(arcs[words]) if usable else None,
        sentences=lengths.size,
        sentences_correct=_count(np.diff(right[offsets]) == lengths),
        by_type=_by_relation(names, relation, other, heads) if usable else {},
    )


def sentence_counts(gold: Trees, predicted: Trees, offsets: Places) -> NDArray[np.int64]:
    """Return the counts of correct, gold and predicted arcs without relations of each sentence, (sentences, 3).

    F1 of these counts is UAS, so the tests of significance of spans apply.
    """
    right = np.concatenate([np.zeros(1, np.int64), np.cumsum(gold.heads == predicted.heads)])
    lengths = np.diff(offsets)
    return np.stack([np.diff(right[offsets]), lengths, lengths], axis=1).astype(np.int64)


def usable_relations(relations: Column) -> bool:
    """Whether relations can be scored: there are at least two, and every word has one."""
    present = np.unique(relations.ids)
    unknown = relations.vocabulary.id_of(UNKNOWN)
    return present.size > 1 and not bool((present == unknown).any())


def punctuation(forms: Column) -> NDArray[np.bool_]:
    """Return which tokens consist of punctuation and symbols only."""
    marks = [
        bool(form) and all(unicodedata.category(character)[0] in "PS" for character in form)
        for form in forms.vocabulary.strings()
    ]
    found: NDArray[np.bool_] = np.array(marks, np.bool_)[forms.ids]
    return found


def numbered_together(gold: Column, predicted: Column) -> tuple[list[str], Ids, Ids]:
    """Return the relations of both sides, and the number of each relation in that list."""
    names = gold.vocabulary.strings()
    numbers = {name: number for number, name in enumerate(names)}
    table = np.array(
        [numbers.setdefault(name, len(numbers)) for name in predicted.vocabulary.strings()], np.int32
    )
    return list(numbers), gold.ids, table[predicted.ids]


def _by_relation(
    names: Sequence[str], gold: Ids, predicted: Ids, heads: NDArray[np.bool_]
) -> dict[str, ArcScore]:
    count = len(names)
    columns = (
        np.bincount(gold[heads & (gold == predicted)], minlength=count),
        np.bincount(gold, minlength=count),
        np.bincount(predicted, minlength=count),
        np.bincount(gold[heads], minlength=count),
    )
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return {
        name: ArcScore(**asdict(SpanScore.of(correct, of_gold, of_predicted)), heads_correct=with_head)
        for name, correct, of_gold, of_predicted, with_head in sorted(rows)
        if of_gold or of_predicted
    }


def _count(marked: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(marked))


def _percent(marked: NDArray[np.bool_]) -> float:
    return 100.0 * _count(marked) / marked.size if marked.size else 0.0


def _check(gold: Trees, predicted: Trees, offsets: Places, punctuation: NDArray[np.bool_]) -> None:
    tokens = gold.heads.shape
    sizes = (predicted.heads, gold.relations.ids, predicted.relations.ids, punctuation)
    if any(array.shape != tokens for array in sizes):
        raise ValueError("The arrays of gold and predicted trees must have the same length.")
    if offsets.size < 1 or offsets[0] != 0 or offsets[-1] != gold.heads.size or (np.diff(offsets) < 0).any():
        raise ValueError("Array offsets must rise from 0 to the number of tokens.")
