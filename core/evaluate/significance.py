"""Whether two taggings of one corpus differ by more than chance.

Paired bootstrap of span F1 over sentences (Efron and Tibshirani 1993; for this use Berg-Kirkpatrick, Burkett and Klein
2012), and McNemar's test on tokens.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel, readonly

#: With fewer discordant tokens McNemar's test is exact; with more, chi-square is as good.
EXACT_BELOW = 25
#: Sentences drawn between two chances to stop: some hundredths of a second.
SLICE_DRAWS = 4_000_000

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The difference in F1 (head less base, points of 100), its interval, and how likely chance makes one as large."""

    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class McNemar:
    """Tokens that only one side has right, and how likely they would be shared as unevenly by chance."""

    only_base: int
    only_head: int
    #: Chi-square with continuity correction; None when the test is exact.
    statistic: float | None
    p_value: float


@kernel
def _resample(
    counts: NDArray[np.int64], first: int, last: int, seed: np.uint64, sums: NDArray[np.int64],
    f1: NDArray[np.float64],
) -> None:  # fmt: skip
    """F1 of every tagging on resamples `first` to `last`, all of the same sentences.

    Draw j of resample r is output r * S + j of splitmix64, scaled to S by its upper half: no state to carry, so any
    slice of the resamples gives the same numbers.
    """
    sentences, columns = counts.shape
    for r in range(first, last):
        for k in range(columns):
            sums[k] = 0
        at = seed + np.uint64(r) * np.uint64(sentences) * _GOLDEN
        for _ in range(sentences):
            at += _GOLDEN
            z = (at ^ (at >> np.uint64(30))) * _M1
            z = (z ^ (z >> np.uint64(27))) * _M2
            z ^= z >> np.uint64(31)
            drawn = np.int64(((z >> np.uint64(32)) * np.uint64(sentences)) >> np.uint64(32))
            for k in range(columns):
                sums[k] += counts[drawn, k]
        for m in range(columns // 3):
            spans = sums[3 * m + 1] + sums[3 * m + 2]
            # 2 P R / (P + R) = 2 correct / (gold + predicted)
            f1[r, m] = 200.0 * sums[3 * m] / spans if spans > 0 else 0.0


def resampled_f1(
    counts: Sequence[NDArray[np.int64]], resamples: int, seed: int
) -> Generator[float, None, NDArray[np.float64]]:
    """(resamples, taggings): F1 of each tagging on sentences drawn with replacement, the same for all.

    `counts` are the `sentence_counts` of each tagging. Yields the fraction done, and can be closed at any yield.
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
    """F1 of the whole."""
    correct, gold, predicted = counts.sum(axis=0).tolist()
    return 200.0 * correct / (gold + predicted) if gold + predicted else 0.0


def bootstrap(
    base: NDArray[np.float64], head: NDArray[np.float64], observed: float, confidence: float
) -> Bootstrap:
    """Judge an observed difference by those of the resamples.

    The interval is of percentiles. The differences of resamples lie around the observed one as that lies around the
    true one; so the p-value is the share of them that are at least as far from it as it is from nothing, the observed
    itself counted in, so that it is never zero.
    """
    differences = head - base
    low, high = np.quantile(differences, [(1 - confidence) / 2, (1 + confidence) / 2])
    # Sums in another order differ in the last digits; what is equal should count as equal.
    far = np.abs(differences - observed) >= abs(observed) - 1e-9
    p_value = (1 + int(far.sum())) / (1 + differences.size)
    return Bootstrap(observed, float(low), float(high), p_value)


def mcnemar(base_right: NDArray[np.bool_], head_right: NDArray[np.bool_]) -> McNemar:
    """Judge which tokens each side has right. Tokens count as independent, which neighbours are not quite."""
    only_base = int((base_right & ~head_right).sum())
    only_head = int((head_right & ~base_right).sum())
    discordant = only_base + only_head
    if discordant < EXACT_BELOW:
        tail = sum(math.comb(discordant, k) for k in range(min(only_base, only_head) + 1))
        return McNemar(only_base, only_head, None, min(1.0, 2 * tail / 2**discordant))
    statistic = max(0, abs(only_base - only_head) - 1) ** 2 / discordant
    # The tail of chi-square with one degree of freedom.
    return McNemar(only_base, only_head, statistic, math.erfc(math.sqrt(statistic / 2)))
