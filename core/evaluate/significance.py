"""Significance of the difference between two taggings of one corpus.

Paired bootstrap of span F1 over sentences (Efron and Tibshirani 1993; Berg-Kirkpatrick, Burkett and Klein 2012), and
McNemar's test on tokens.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.hashing import GOLDEN, scaled_below, splitmix64
from tagsmith.core.base.jit import kernel, readonly

#: With fewer discordant tokens, the exact McNemar test is used. With more, the chi-square approximation is accurate.
EXACT_BELOW = 25
#: Sentences drawn between two points at which the caller can stop: some hundredths of a second.
SLICE_DRAWS = 4_000_000

_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The difference in F1 (head minus base, in points of 100), its confidence interval and p-value."""

    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class McNemar:
    """Tokens that only one side labels correctly, and the p-value of their difference."""

    only_base: int
    only_head: int
    #: Chi-square with continuity correction; None for the exact test.
    statistic: float | None
    p_value: float


@kernel
def _resample(
    counts: NDArray[np.int64], first: int, last: int, seed: np.uint64, sums: NDArray[np.int64],
    f1: NDArray[np.float64],
) -> None:  # fmt: skip
    """Compute F1 of every tagging on resamples `first` to `last`; all taggings use the same sentences.

    Draw j of resample r is output r * S + j of splitmix64, scaled to S by its upper half. There is no state to carry,
    so any slice of the resamples gives the same numbers.
    """
    sentences, columns = counts.shape
    for r in range(first, last):
        for k in range(columns):
            sums[k] = 0
        at = seed + np.uint64(r) * np.uint64(sentences) * GOLDEN
        for _ in range(sentences):
            at += GOLDEN
            drawn = scaled_below(splitmix64(at), sentences)
            for k in range(columns):
                sums[k] += counts[drawn, k]
        for m in range(columns // 3):
            spans = sums[3 * m + 1] + sums[3 * m + 2]
            # 2 P R / (P + R) = 2 correct / (gold + predicted)
            f1[r, m] = 200.0 * sums[3 * m] / spans if spans > 0 else 0.0


def resampled_f1(
    counts: Sequence[NDArray[np.int64]], resamples: int, seed: int
) -> Generator[float, None, NDArray[np.float64]]:
    """Return F1 of each tagging, (resamples, taggings), on sentences drawn with replacement.

    All taggings use the same draws. `counts` are the `sentence_counts` of each tagging. Yields the fraction done.
    """
    packed = readonly(np.concatenate(counts, axis=1), np.int64)
    sentences = len(packed)
    f1, sums = np.zeros((resamples, len(counts))), np.zeros(packed.shape[1], np.int64)
    step = max(1, SLICE_DRAWS // max(1, sentences * len(counts)))
    for first in range(0, resamples, step):
        last = min(first + step, resamples)
        _resample(packed, first, last, np.uint64(seed & _MASK), sums, f1)
        yield last / resamples
    return f1


def f1_of(counts: NDArray[np.int64]) -> float:
    """Return F1 over all sentences."""
    correct, gold, predicted = counts.sum(axis=0).tolist()
    return 200.0 * correct / (gold + predicted) if gold + predicted else 0.0


def bootstrap(
    base: NDArray[np.float64], head: NDArray[np.float64], observed: float, confidence: float
) -> Bootstrap:
    """Test an observed difference against the differences of the resamples.

    The interval is the percentile interval. Differences of resamples are distributed around the observed difference as
    that is around the true one. So the p-value is the share of them that are at least as far from the observed
    difference as it is from zero. The observed difference is included, so the p-value is never zero.
    """
    differences = head - base
    low, high = np.quantile(differences, [(1 - confidence) / 2, (1 + confidence) / 2])
    # Rounding depends on the order of a sum; the tolerance makes equal differences count as equal.
    far = np.abs(differences - observed) >= abs(observed) - 1e-9
    p_value = (1 + int(far.sum())) / (1 + differences.size)
    return Bootstrap(observed, float(low), float(high), p_value)


def mcnemar(base_right: NDArray[np.bool_], head_right: NDArray[np.bool_]) -> McNemar:
    """Run McNemar's test on tokens. It assumes independent tokens, which holds only roughly within a sentence."""
    only_base = int((base_right & ~head_right).sum())
    only_head = int((head_right & ~base_right).sum())
    discordant = only_base + only_head
    if discordant < EXACT_BELOW:
        tail = sum(math.comb(discordant, k) for k in range(min(only_base, only_head) + 1))
        return McNemar(only_base, only_head, None, min(1.0, 2 * tail / 2**discordant))
    statistic = max(0, abs(only_base - only_head) - 1) ** 2 / discordant
    # The tail of chi-square with one degree of freedom.
    return McNemar(only_base, only_head, statistic, math.erfc(math.sqrt(statistic / 2)))
