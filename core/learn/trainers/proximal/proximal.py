"""Proximal steps over groups of templates, as one factor per template.

The proximity operator of threshold * sum over groups of d_m |w_m| subtracts threshold * d_m from the norm of each group
that does not overlap with others (Martins et al. 2011, Eq. 14):

    w_m <- max(0, 1 - threshold d_m / |w_m|) w_m.

It needs only the norms of the groups. Overlapping groups are split into sets of disjoint groups. The steps of the sets
are applied in sequence, inner groups before the groups that contain them (section 4). For nested groups, this is the
proximity operator of the whole sum (Jenatton et al. 2010). For other overlaps it is not, and no closed form is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Level:
    """Disjoint groups: group m holds templates `members[starts[m]:starts[m+1]]`."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]  # (groups + 1,)
    weights: Array  # (groups,) d_m

    def ratios(self, squares: Array) -> Array:
        """Return |w_m| / d_m: the threshold at which each group vanishes."""
        return np.asarray(np.sqrt(np.add.reduceat(squares[self.members], self.starts[:-1])) / self.weights)

    def of_templates(self, by_group: Array, count: int) -> Array:
        """Convert factors per group to factors for `count` templates."""
        factors = np.ones(count)
        factors[self.members] = np.repeat(by_group, np.diff(self.starts))
        return factors


def shrunk(ratios: Array, threshold: float) -> Array:
    """Return max(0, 1 - threshold / ratio). Where the ratio is zero the factor is 1, as the weights are zero anyway."""
    return np.maximum(0.0, 1.0 - threshold / np.where(ratios > 0.0, ratios, np.inf))


def budget_threshold(ratios: Array, budget: int) -> float:
    """Return the midpoint of the budget-th ratio and the next; 0 if there are no more. Ties there go together."""
    if np.count_nonzero(ratios) <= budget:
        return 0.0
    upper, lower = _around(ratios, budget)
    return 0.5 * (upper + lower)


def shrunk_to(ratios: Array, budget: int) -> Array:
    """Return the factors of the step that leaves `budget` groups; in a tie, the first groups stay."""
    if np.count_nonzero(ratios) <= budget:
        return np.ones(len(ratios))
    if budget == 0:
        return np.zeros(len(ratios))
    upper, lower = _around(ratios, budget)
    if upper > lower:
        return shrunk(ratios, 0.5 * (upper + lower))
    # A threshold would drop all tied groups. If templates are given twice, these could be the best ones.
    lower = float(ratios[ratios < upper].max(initial=0.0))
    factors = shrunk(ratios, 0.5 * (upper + lower))
    factors[np.flatnonzero(ratios == upper)[budget - np.count_nonzero(ratios > upper) :]] = 0.0
    return factors


def _around(ratios: Array, budget: int) -> tuple[float, float]:
    """Return the budget-th largest ratio and the next."""
    upper, lower = -np.partition(-ratios, (budget - 1, budget))[budget - 1 : budget + 1]
    return float(upper), float(lower)


def levels_of(groups: Sequence[Sequence[int]], sizes: Array) -> tuple[Level, ...]:
    """Split groups of templates into sets of disjoint groups, inner groups first.

    `sizes` is the number of features of each template. d_m is log2 of the number of features of a group, at least 1.
    """
    bits = [sum(1 << template for template in group) for group in groups]
    steps: list[list[int]] = []
    covered: list[int] = []
    for m in sorted(range(len(groups)), key=lambda m: len(groups[m])):
        # Put it after the last overlapping set, so that smaller groups inside it come first.
        step = next((i + 1 for i in reversed(range(len(steps))) if covered[i] & bits[m]), 0)
        if step == len(steps):
            steps.append([])
            covered.append(0)
        steps[step].append(m)
        covered[step] |= bits[m]
    return tuple(_level([groups[m] for m in step], sizes) for step in steps)


def _level(groups: Sequence[Sequence[int]], sizes: Array) -> Level:
    members = np.concatenate([np.asarray(group, np.int64) for group in groups])
    starts = np.cumsum([0, *map(len, groups)])
    features = np.add.reduceat(sizes[members], starts[:-1])
    return Level(members, starts, np.log2(np.maximum(features, 2.0)))


def step_factors(
    levels: Sequence[Level], squares: Array, threshold: float | None, budget: int | None
) -> Array:
    """Return the combined factors of the steps of all sets, for a threshold or a budget of groups.

    The budget is divided among the sets by the largest ratios, ignoring overlaps (Martins et al., footnote 5).
    """
    factors = np.ones(len(squares))
    shares = [0] * len(levels) if budget is None else _shares(levels, squares, budget)
    for level, share in zip(levels, shares, strict=True):
        ratios = level.ratios(squares * factors * factors)
        by_group = shrunk_to(ratios, share) if threshold is None else shrunk(ratios, threshold)
        factors *= level.of_templates(by_group, len(squares))
    return factors


def _shares(levels: Sequence[Level], squares: Array, budget: int) -> list[int]:
    if len(levels) == 1:
        return [budget]
    ratios = [level.ratios(squares) for level in levels]
    order = np.argsort(-np.concatenate(ratios), kind="stable")[:budget]
    of = np.repeat(np.arange(len(levels)), [len(each) for each in ratios])
    return [int(share) for share in np.bincount(of[order], minlength=len(levels))]
