"""Proximal steps over groups of templates, as one factor per template.

The proximity operator of threshold * sum over groups of d_m |w_m| subtracts threshold * d_m from the norm of each group
that does not overlap with others (Martins et al. 2011, Eq. 14):

    w_m <- max(0, 1 - threshold d_m / |w_m|) w_m.

It needs only the norms of the groups. Overlapping groups are split into sets of disjoint groups. The steps of the sets
are applied in sequence, inner groups before the groups that contain them (section 4). For nested groups, this is the
proximity operator of the whole sum (Jenatton et al. 2010). For other overlaps it is not, and no closed form is known.

A budget B sets the threshold tau: groups are ranked, and tau is the mean of the B-th and the next. The paper ranks by
|w_m| and then applies Eq. 14, which subtracts tau d_m. With d_m > 1, this can leave far fewer than B groups.
`BudgetReading` has the ways to resolve this.
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

    def norms(self, squares: Array) -> Array:
        """Return |w_m|."""
        return np.asarray(np.sqrt(np.add.reduceat(squares[self.members], self.starts[:-1])))

    def ratios(self, squares: Array) -> Array:
        """Return |w_m| / d_m: the threshold at which each group vanishes."""
        return self.norms(squares) / self.weights

    def of_templates(self, by_group: Array, count: int) -> Array:
        """Convert factors per group to factors for `count` templates."""
        factors = np.ones(count)
        factors[self.members] = np.repeat(by_group, np.diff(self.starts))
        return factors


@dataclass(frozen=True, slots=True)
class BudgetReading:
    """How a budget ranks groups, by |w_m| or |w_m| / d_m, and how it shrinks them, by tau or tau d_m.

    If d_m enters both or neither, exactly `budget` groups remain. Ranking by |w_m| and shrinking by tau d_m is the text
    of the paper, and at most `budget` groups remain. The fourth combination has no use: a group that ranks below tau
    can have a norm above tau, so more than `budget` groups would remain.
    """

    scaled_ranks: bool
    scaled_steps: bool

    def ranks(self, level: Level, squares: Array) -> Array:
        """Return the numbers by which groups are ranked."""
        return level.ratios(squares) if self.scaled_ranks else level.norms(squares)

    def factors(self, level: Level, squares: Array, budget: int) -> Array:
        """Return the factors of the step that enforces a budget for the groups of one set."""
        ranks = self.ranks(level, squares)
        if self.scaled_ranks == self.scaled_steps or budget == 0:
            return shrunk_to(ranks, budget)
        return shrunk(level.ratios(squares), budget_threshold(ranks, budget))


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


def strength_factors(levels: Sequence[Level], squares: Array, threshold: float) -> Array:
    """Return the combined factors of the steps of all sets for one threshold."""
    factors = np.ones(len(squares))
    for level in levels:
        by_group = shrunk(level.ratios(squares * factors * factors), threshold)
        factors *= level.of_templates(by_group, len(squares))
    return factors


def budget_factors(levels: Sequence[Level], squares: Array, budget: int, reading: BudgetReading) -> Array:
    """Return the combined factors of the steps of all sets for a budget of groups.

    Every set has its own threshold. The budget is divided among the sets by rank, ignoring overlaps: each set gets the
    number of its groups among the first `budget` of all sets (Martins et al., footnote 5). A set is ranked again before
    its step, because the steps of earlier sets have shrunk templates that it shares with them. So a template can be
    dropped even if its own group is among the first, and fewer groups than the budget may remain.
    """
    factors = np.ones(len(squares))
    shares = _shares([reading.ranks(level, squares) for level in levels], budget)
    for level, share in zip(levels, shares, strict=True):
        by_group = reading.factors(level, squares * factors * factors, share)
        factors *= level.of_templates(by_group, len(squares))
    return factors


def _shares(ranks: Sequence[Array], budget: int) -> list[int]:
    if len(ranks) == 1:
        return [budget]
    order = np.argsort(-np.concatenate(ranks), kind="stable")[:budget]
    of = np.repeat(np.arange(len(ranks)), [len(each) for each in ranks])
    return [int(share) for share in np.bincount(of[order], minlength=len(ranks))]
