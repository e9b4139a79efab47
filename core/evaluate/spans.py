"""Span scores by the rules of conlleval, over label ids.

A label is a tag and a type: `B-NP` is B of NP; a label without a dash is its own tag and has no type. Where spans start
and end is a function of two neighbouring labels: tabulated once a label set, looked up for all tokens at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STARTS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
_ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
_OUTSIDE = ("O", ".")


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens start:stop of one type."""

    type: str
    start: int
    stop: int


@dataclass(frozen=True)
class Metrics:
    """Scores in percent, and the counts they come from."""

    precision: float
    recall: float
    f1: float
    accuracy: float
    correct: int
    gold: int
    predicted: int
    tokens: int
    sentences: int
    sentences_correct: int
    by_type: dict[str, dict[str, float]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "accuracy": self.accuracy,
            "spans": {"correct": self.correct, "gold": self.gold, "predicted": self.predicted},
            "tokens": self.tokens,
            "sentences": self.sentences,
            "sentences_correct": self.sentences_correct,
            "by_type": self.by_type,
        }


def _parts(label: str) -> tuple[str, str]:
    tag, dash, kind = label.partition("-")
    return (tag, kind) if dash else (label, "")


class _Rules:
    """Where spans start and end, for every pair of neighbouring labels; the last row and column are the outside."""

    def __init__(self, labels: Sequence[str]) -> None:
        parts = [*map(_parts, labels), ("O", "")]
        self.types = list(dict.fromkeys(kind for _, kind in parts))
        numbers = {kind: i for i, kind in enumerate(self.types)}
        self.type_of = np.array([numbers[kind] for _, kind in parts], np.int64)
        tags = [tag for tag, _ in parts]
        self.start = np.array([[self._starts(a, b) for b in tags] for a in tags])
        self.end = np.array([[self._ends(a, b) for b in tags] for a in tags])
        other = self.type_of[:, None] != self.type_of[None, :]
        inside = np.array([tag not in _OUTSIDE for tag in tags])
        self.start |= other & inside[None, :]
        self.end |= other & inside[:, None]
        self.outside = len(labels)

    @staticmethod
    def _starts(before: str, tag: str) -> bool:
        return before + tag in _STARTS or tag in "[]"

    @staticmethod
    def _ends(before: str, tag: str) -> bool:
        return before + tag in _ENDS or before in "[]"

    def spans(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """(spans, 3): start, stop, type. An end closes the latest start that is still open."""
        edges = np.insert(ids.astype(np.int64), offsets[1:], self.outside)
        edges = np.concatenate([[self.outside], edges])
        place = np.insert(np.arange(len(ids), dtype=np.int64), offsets[1:], offsets[1:])
        before, here = edges[:-1], edges[1:]
        starts, ends = np.flatnonzero(self.start[before, here]), np.flatnonzero(self.end[before, here])
        # A start is matched by the first end behind it, unless another start comes before that end.
        match = np.searchsorted(ends, starts, side="right")
        closed = match < len(ends)
        starts, match = starts[closed], match[closed]
        stops = ends[match]
        following = np.append(starts[1:], len(here) + 1)
        kept = following >= stops
        starts, stops = starts[kept], stops[kept]
        return np.stack([place[starts], place[stops], self.type_of[here[starts]]], axis=1)


def evaluate(
    label_names: Sequence[str],
    gold: NDArray[np.int32],
    predicted: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> Metrics:
    """Score predicted labels against gold ones, both as ids into `label_names`."""
    rules = _Rules(label_names)
    gold_spans, predicted_spans = rules.spans(gold, offsets), rules.spans(predicted, offsets)
    found = {tuple(span) for span in predicted_spans.tolist()}
    correct = [span for span in gold_spans.tolist() if tuple(span) in found]
    right = gold == predicted
    wrong_before = np.concatenate([[0], np.cumsum(~right)])
    sentences_correct = int(np.count_nonzero(wrong_before[offsets[1:]] == wrong_before[offsets[:-1]]))
    counts = [np.bincount([s[2] for s in part], minlength=len(rules.types)) for part in
              (correct, gold_spans.tolist(), predicted_spans.tolist())]  # fmt: skip
    by_type = {
        name: _scores(int(c), int(g), int(p))
        for name, c, g, p in sorted(zip(rules.types, *counts, strict=True))
        if g or p
    }
    overall = _scores(len(correct), len(gold_spans), len(predicted_spans))
    return Metrics(
        precision=overall["precision"],
        recall=overall["recall"],
        f1=overall["f1"],
        accuracy=100.0 * float(right.mean()) if len(gold) else 0.0,
        correct=len(correct),
        gold=len(gold_spans),
        predicted=len(predicted_spans),
        tokens=len(gold),
        sentences=len(offsets) - 1,
        sentences_correct=sentences_correct,
        by_type=by_type,
    )


def _scores(correct: int, gold: int, predicted: int) -> dict[str, float]:
    precision = 100.0 * correct / predicted if predicted else 0.0
    recall = 100.0 * correct / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "gold": gold, "predicted": predicted}


def spans_of(labels: Sequence[str]) -> list[Span]:
    """The spans of one sentence."""
    names = list(dict.fromkeys(labels))
    numbers = {name: i for i, name in enumerate(names)}
    rules = _Rules(names)
    ids = np.array([numbers[label] for label in labels], np.int32)
    found = rules.spans(ids, np.array([0, len(labels)], np.int64)).tolist()
    return [Span(rules.types[kind], start, stop) for start, stop, kind in found]
