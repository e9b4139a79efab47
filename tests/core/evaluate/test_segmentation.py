"""Scores of words against a literal twin of the bakeoffs' scorer."""

import random

import numpy as np
import pytest

from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.corpus.labels.segmentation import codes_words, words_of
from tagsmith.core.evaluate.segmentation import evaluate, sentence_counts, vocabulary_score
from tagsmith.core.learn.problem.problem import gold_of


def spans(labels: list[str]) -> set[tuple[int, int]]:
    return {(word.start, word.stop) for word in words_of(labels)}


def sentences(rng: random.Random, count: int) -> list[list[str]]:
    """Lines of words over few characters, so that the same ones come again."""
    return [
        ["".join(rng.choices("上海市人", k=rng.choice([1, 1, 2, 2, 3]))) for _ in range(rng.randint(1, 8))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("coding", [2, 4, 6])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_words_counted_one_by_one(seed: int, coding: int) -> None:
    rng = random.Random(seed)
    train, test = sentences(rng, 6), sentences(rng, 12)
    corpora = [
        read_segmented(["\n".join(map(" ".join, part)).encode()], max_line_bytes=1000, coding=coding)
        for part in (train, test)
    ]
    found = gold_of(corpora[1], ())
    names, gold = found.labels, found.ids
    predicted = gold.copy()
    wrong = np.random.default_rng(seed).random(gold.size) < 0.2
    predicted[wrong] = np.random.default_rng(seed).integers(0, len(names), int(wrong.sum()))
    offsets = corpora[1].offsets
    known = {word for line in train for word in line}
    correct = found = outside = outside_right = 0
    for line, begin, end in zip(test, offsets[:-1], offsets[1:], strict=True):
        cut = spans([names[i] for i in predicted[begin:end]])
        found += len(cut)
        at = 0
        for word in line:
            right = (at, at + len(word)) in cut
            correct += right
            outside += word not in known
            outside_right += right and word not in known
            at += len(word)
    words = sum(map(len, test))
    metrics = evaluate(names, gold, predicted, offsets)
    assert (metrics.correct, metrics.gold, metrics.predicted) == (correct, words, found)
    assert metrics.f1 == pytest.approx(200 * correct / (words + found))
    assert metrics.accuracy == pytest.approx(100 * np.mean(gold == predicted))
    assert sentence_counts(names, gold, predicted, offsets).sum(axis=0).tolist() == [correct, words, found]
    score = vocabulary_score(corpora[0], corpora[1], names, predicted)
    assert score is not None
    assert score.out_of_vocabulary == outside
    assert score.out_of_vocabulary_rate == pytest.approx(100 * outside / words)
    assert score.out_of_vocabulary_recall == pytest.approx(100 * outside_right / outside if outside else 0)
    assert score.in_vocabulary_recall == pytest.approx(100 * (correct - outside_right) / (words - outside))


def test_labels_of_spans_are_scored_as_spans() -> None:
    assert not codes_words(["B-NP", "I-NP"])
    assert not codes_words(["B", "I", "O"])
    names, gold = ("B-NP", "I-NP", "O"), np.array([0, 1, 2], np.int32)
    metrics = evaluate(names, gold, gold, np.array([0, 3]))
    assert (metrics.correct, metrics.gold) == (1, 1)
    assert list(metrics.by_type) == ["NP"]
