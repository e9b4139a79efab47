"""Paired bootstrap and McNemar against literal twins and against scipy."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tagsmith.core.base.steps import finished
from tagsmith.core.evaluate import significance
from tagsmith.core.evaluate.significance import Bootstrap, bootstrap, f1_of, mcnemar, resampled_f1
from tagsmith.core.evaluate.spans import evaluate, sentence_counts

LABELS = ["O", "B-A", "I-A", "B-B", "I-B"]
MASK = (1 << 64) - 1


def tagging(sentences: int, wrong: float, seed: int) -> tuple[Any, Any, Any]:
    """(gold, predicted, offsets) with so large a share of the tokens wrong."""
    source = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(source.integers(0, 9, sentences))]).astype(np.int64)
    gold = np.random.default_rng(1).integers(0, 5, offsets[-1]).astype(np.int32)
    noise = source.integers(0, 5, gold.size).astype(np.int32)
    return gold, np.where(source.random(gold.size) < wrong, noise, gold).astype(np.int32), offsets


def splitmix(state: int) -> int:
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def literal(counts: list[Any], resamples: int, seed: int, confidence: float) -> list[Bootstrap]:
    """Each resample drawn and summed in plain Python; every tagging after the first against the first."""
    sentences, made, state = len(counts[0]), [], seed
    for _ in range(resamples):
        drawn = []
        for _ in range(sentences):
            state = (state + 0x9E3779B97F4A7C15) & MASK
            drawn.append(((splitmix(state) >> 32) * sentences) >> 32)
        row = []
        for each in counts:
            correct, gold, predicted = (sum(int(each[i][k]) for i in drawn) for k in range(3))
            precision, recall = correct / predicted if predicted else 0, correct / gold if gold else 0
            row.append(200 * precision * recall / (precision + recall) if correct else 0.0)
        made.append(row)
    found = []
    for k in range(1, len(counts)):
        observed = f1_of(counts[k]) - f1_of(counts[0])
        differences = sorted(row[k] - row[0] for row in made)
        far = sum(abs(each - observed) >= abs(observed) - 1e-9 for each in differences)

        def quantile(q: float, ordered: list[float] = differences) -> float:
            place = q * (len(ordered) - 1)
            low = int(place)
            high = min(low + 1, len(ordered) - 1)
            return ordered[low] + (place - low) * (ordered[high] - ordered[low])

        ends = quantile((1 - confidence) / 2), quantile((1 + confidence) / 2)
        found.append(Bootstrap(observed, *ends, (1 + far) / (1 + resamples)))
    return found


def run(counts: list[Any], resamples: int, seed: int) -> Any:
    fractions: list[float] = []
    made = finished(resampled_f1(counts, resamples, seed), fractions.append)
    assert fractions[-1] == 1.0
    assert fractions == sorted(fractions)
    return made


@pytest.mark.parametrize("seed", [1, 0, 2**63 - 1])
def test_the_bootstrap_is_that_of_its_literal_twin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small slices, so that there are several.
    monkeypatch.setattr(significance, "SLICE_DRAWS", 1000)
    counts = []
    for i, wrong in enumerate((0.2, 0.25, 0.6)):
        gold, _, offsets = tagging(40, 0.0, 3)
        noise = np.random.default_rng(i)
        predicted = np.where(noise.random(gold.size) < wrong, 0, gold).astype(np.int32)
        counts.append(sentence_counts(LABELS, gold, predicted, offsets))
    f1 = run(counts, 60, seed)
    for k, expected in enumerate(literal(counts, 60, seed, 0.9), start=1):
        made = bootstrap(f1[:, 0], f1[:, k], f1_of(counts[k]) - f1_of(counts[0]), 0.9)
        assert made.p_value == expected.p_value
        assert (made.difference, made.low, made.high) == pytest.approx(
            (expected.difference, expected.low, expected.high), abs=1e-9
        )


def test_equal_taggings_do_not_differ_and_far_ones_do() -> None:
    gold, good, offsets = tagging(300, 0.05, 2)
    bad = np.zeros_like(good)
    counts = [sentence_counts(LABELS, gold, each, offsets) for each in (good, good, bad)]
    f1 = run(counts, 2000, 1)
    same = bootstrap(f1[:, 0], f1[:, 1], 0.0, 0.95)
    assert same == Bootstrap(0.0, 0.0, 0.0, 1.0)
    far = bootstrap(f1[:, 0], f1[:, 2], f1_of(counts[2]) - f1_of(counts[0]), 0.95)
    assert far.p_value == 1 / 2001
    assert far.low < far.difference < far.high < 0


def test_a_corpus_without_spans_has_nothing_to_compare() -> None:
    counts = np.zeros((5, 3), np.int64)
    assert (run([counts, counts], 100, 1) == 0).all()
    assert f1_of(counts) == 0.0


def test_under_chance_alone_p_values_are_not_small_too_often() -> None:
    """Two taggers equally good by construction: about a tenth of the p-values may be below 0.1."""
    below = 0
    for seed in range(100):
        source = np.random.default_rng(seed)
        gold, _, offsets = tagging(150, 0.0, 4)
        pair = [np.where(source.random(gold.size) < 0.1, 0, gold).astype(np.int32) for _ in range(2)]
        counts = [sentence_counts(LABELS, gold, each, offsets) for each in pair]
        f1 = run(counts, 400, seed)
        below += bootstrap(f1[:, 0], f1[:, 1], f1_of(counts[1]) - f1_of(counts[0]), 0.95).p_value < 0.1
    assert 2 <= below <= 20


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 10), st.integers(0, 2**31))
@settings(max_examples=200, deadline=None)
def test_mcnemar_is_that_of_scipy(only_base: int, only_head: int, both: int, seed: int) -> None:
    rights = [(True, False)] * only_base + [(False, True)] * only_head + [(True, True)] * both
    random.Random(seed).shuffle(rights)
    base = np.array([right[0] for right in rights], np.bool_)
    head = np.array([right[1] for right in rights], np.bool_)
    made = mcnemar(base, head)
    assert (made.only_base, made.only_head) == (only_base, only_head)
    discordant = only_base + only_head
    if discordant < significance.EXACT_BELOW:
        expected = stats.binomtest(only_base, discordant, 0.5).pvalue if discordant else 1.0
        assert made.statistic is None
    else:
        statistic = max(0, abs(only_base - only_head) - 1) ** 2 / discordant
        assert made.statistic == statistic
        expected = stats.chi2.sf(statistic, 1)
    assert made.p_value == pytest.approx(expected, rel=1e-9)


def test_counts_of_sentences_add_up_to_the_whole() -> None:
    for seed in range(20):
        gold, predicted, offsets = tagging(30, 0.3, seed)
        counts = sentence_counts(LABELS, gold, predicted, offsets)
        whole = evaluate(LABELS, gold, predicted, offsets)
        assert counts.sum(axis=0).tolist() == [whole.correct, whole.gold, whole.predicted]
        assert f1_of(counts) == pytest.approx(whole.f1)
        for i in range(30):
            a, b = offsets[i], offsets[i + 1]
            alone = evaluate(LABELS, gold[a:b], predicted[a:b], np.array([0, b - a]))
            assert counts[i].tolist() == [alone.correct, alone.gold, alone.predicted]
