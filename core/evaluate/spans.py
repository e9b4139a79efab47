"""Span precision, recall and F1 as computed by `conlleval`, and token accuracy."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.corpus.labels.chunks import ChunkRules, Flags, boundaries, with_pauses

ScoreName = Literal["f1", "accuracy"]


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """A chunk of `type`: tokens `start` to `stop` - 1."""

    type: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SpanScore:
    """Scores in percent, and the counts they are computed from."""

    precision: float
    recall: float
    f1: float
    correct: int
    gold: int
    predicted: int

    @classmethod
    def of(cls, correct: int, gold: int, predicted: int) -> "SpanScore":
        precision, recall = _percent(correct, predicted), _percent(correct, gold)
        f1 = 2.0 * precision * recall / (precision + recall) if correct else 0.0
        return cls(precision, recall, f1, correct, gold, predicted)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Agreement of predicted labels with gold labels, in percent."""

    precision: float
    recall: float
    f1: float
    accuracy: float
    correct: int  # spans
    gold: int
    predicted: int
    tokens: int
    tokens_correct: int
    sentences: int
    sentences_correct: int
    by_type: dict[str, SpanScore]
    #: The score that passes and runs are compared by.
    score: ScoreName = "f1"

    @property
    def value(self) -> float:
        """The value of that score."""
        return self.f1 if self.score == "f1" else self.accuracy

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def evaluate(
    label_names: Sequence[str],
    gold: NDArray[np.int32],
    predicted: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> Metrics:
    """Score `predicted` against `gold`. Both are ids in `label_names`; sentence i is offsets[i]:offsets[i+1]."""
    found = _find(label_names, gold, predicted, offsets)
    kinds = len(found.type_names)
    correct_by = np.bincount(found.gold_types[found.correct], minlength=kinds)
    gold_by = np.bincount(found.gold_types[found.gold], minlength=kinds)
    predicted_by = np.bincount(found.predicted_types[found.predicted], minlength=kinds)
    counts = zip(found.type_names, correct_by.tolist(), gold_by.tolist(), predicted_by.tolist(), strict=True)
    by_type = {name: SpanScore.of(c, g, p) for name, c, g, p in sorted(counts) if g or p}
    total = SpanScore.of(int(correct_by.sum()), int(gold_by.sum()), int(predicted_by.sum()))

    right = np.concatenate([np.zeros(1, np.int64), np.cumsum(gold == predicted)])
    lengths = np.diff(offsets)
    return Metrics(
        total.precision,
        total.recall,
        total.f1,
        _percent(int(right[-1]), gold.size),
        total.correct,
        total.gold,
        total.predicted,
        gold.size,
        int(right[-1]),
        lengths.size,
        int((np.diff(right[offsets]) == lengths).sum()),
        by_type,
    )


def sentence_counts(
    label_names: Sequence[str],
    gold: NDArray[np.int32],
    predicted: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the counts of correct, gold and predicted spans of each sentence, (sentences, 3)."""
    found = _find(label_names, gold, predicted, offsets)
    places = (found.correct, found.gold, found.predicted)
    sentences = offsets.size - 1
    columns = [np.bincount(np.searchsorted(found.pauses, at), minlength=sentences) for at in places]
    return np.stack(columns, axis=1).astype(np.int64)


def spans_of(labels: Sequence[str], label_names: Sequence[str] | None = None) -> list[TokenSpan]:
    """Return the chunks of one sentence.

    `label_names` are all possible labels. They determine the coding (plain classes, BIOES and so on) where the labels
    of one sentence are ambiguous. Without them, the labels of the sentence determine it.
    """
    names = tuple(label_names or ())
    if not label_names or not set(labels) <= set(names):
        names = tuple(dict.fromkeys([*names, *labels]))
    rules, place = _rules_of(names)
    pause = len(names)
    ids = np.array([*(place[label] for label in labels), pause], np.int64)
    starts, ends, types = boundaries(rules, ids, pause)
    ends[-1] = True
    spans: list[TokenSpan] = []
    first = -1
    for token in range(ids.size):
        if first >= 0 and (ends[token] or starts[token]):
            spans.append(TokenSpan(rules.type_names[types[first]], first, token))
            first = -1
        if starts[token]:
            first = token
    return spans


@dataclass(frozen=True, eq=False, slots=True)
class _Found:
    """Positions of chunks in the row of all sentences. The type of a chunk is found at its position."""

    type_names: tuple[str, ...]
    pauses: NDArray[np.int64]  # (sentences,) position of the break after each sentence
    gold_types: NDArray[np.int64]  # (row,)
    predicted_types: NDArray[np.int64]  # (row,)
    gold: NDArray[np.int64]  # positions where gold chunks start
    predicted: NDArray[np.int64]  # positions where predicted chunks start
    correct: NDArray[np.int64]  # positions of the last tokens of correct chunks


def _find(
    label_names: Sequence[str],
    gold: NDArray[np.int32],
    predicted: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> _Found:
    _check(len(label_names), gold, predicted, offsets)
    rules = ChunkRules.of(label_names)
    # Each sentence is followed by a break, which is outside of all chunks.
    pauses = offsets[1:] + np.arange(offsets.size - 1)
    pause = len(label_names)
    g, p = with_pauses(gold, offsets, pause)[0], with_pauses(predicted, offsets, pause)[0]
    gold_starts, gold_ends, gold_types = boundaries(rules, g, pause)
    predicted_starts, predicted_ends, predicted_types = boundaries(rules, p, pause)
    both_start = gold_starts & predicted_starts & (gold_types == predicted_types)
    diverge = (gold_ends != predicted_ends) | (gold_types != predicted_types)
    return _Found(
        rules.type_names,
        pauses,
        gold_types,
        predicted_types,
        np.flatnonzero(gold_starts),
        np.flatnonzero(predicted_starts),
        _correct_places(both_start, gold_ends & predicted_ends, diverge),
    )


@lru_cache(maxsize=64)
def _rules_of(names: tuple[str, ...]) -> tuple[ChunkRules, dict[str, int]]:
    """Return the rules and ids of a set of labels. Cached, because a server uses few models."""
    return ChunkRules.of(names), {name: number for number, name in enumerate(names)}


def _correct_places(both_start: Flags, both_end: Flags, diverge: Flags) -> NDArray[np.int64]:
    """Return the positions of the last tokens of correct chunks.

    A chunk that both sides start together is correct if both end it together before they diverge, that is before only
    one of them ends or their types differ. So only the positions matter where both end or they diverge, and whether a
    common start lies between two such positions.
    """
    places = np.flatnonzero(both_end | diverge)
    begun = np.concatenate([np.zeros(1, np.int64), np.cumsum(both_start)])  # begun[t]: common starts before t
    since = np.concatenate([np.zeros(1, np.int64), places])
    open_at = begun[np.append(places, both_start.size)] > begun[since]
    # A chunk that is still open at the end is correct.
    closed_well = np.append(both_end[places], True)
    ends = np.append(places, both_start.size)[open_at & closed_well]
    last: NDArray[np.int64] = ends - 1
    return last


def _check(
    labels: int, gold: NDArray[np.int32], predicted: NDArray[np.int32], offsets: NDArray[np.int64]
) -> None:
    if gold.ndim != 1 or gold.shape != predicted.shape:
        raise ValueError("Arrays gold and predicted must have the same length.")
    if offsets.size < 1 or offsets[0] != 0 or offsets[-1] != gold.size or (np.diff(offsets) < 0).any():
        raise ValueError("Array offsets must rise from 0 to the number of tokens.")
    for ids in (gold, predicted):
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < labels:
            raise ValueError("Every id must be the id of a label.")
