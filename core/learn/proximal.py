"""Proximal steps over groups of templates: what each template's weights are multiplied with.

The proximity operator of threshold * sum over groups of d_m |w_m| takes threshold * d_m from the norm of each group
that does not overlap with others (Martins et al. 2011, Eq. 14),

    w_m <- max(0, 1 - threshold d_m / |w_m|) w_m,

which needs the groups' norms and nothing else of the weights. Groups that overlap are split into sets of disjoint ones,
whose steps are made one after another, the groups inside others before these (section 4). Where groups are nested that
is the operator of them all (Jenatton et al. 2010); else it is not, and no closed form is known.
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
        """|w_m| / d_m: the threshold at which each group vanishes."""
        return np.asarray(np.sqrt(np.add.reduceat(squares[self.members], self.starts[:-1])) / self.weights)

    def factors(self, squares: Array, threshold: float) -> Array:
        """What the templates, given by the squares of their norms, are multiplied with."""
        kept = shrunk(self.ratios(squares), threshold)
        factors = np.ones(len(squares))
        factors[self.members] = np.repeat(kept, np.diff(self.starts))
        return factors


def shrunk(ratios: Array, threshold: float) -> Array:
    """max(0, 1 - threshold / ratio); what is zero stays so, whatever it is multiplied with."""
    return np.maximum(0.0, 1.0 - threshold / np.where(ratios > 0.0, ratios, np.inf))


def budget_threshold(ratios: Array, budget: int) -> float:
    """Midway between the budget-th ratio and the next, so that so many groups are left; 0 if no more are there.

    Groups that tie around the budget go together.
    """
    if np.count_nonzero(ratios) <= budget:
        return 0.0
    if budget == 0:
        return float(ratios.max())
    upper, lower = -np.partition(-ratios, (budget - 1, budget))[budget - 1 : budget + 1]
    return float(0.5 * (upper + lower))


def levels_of(groups: Sequence[Sequence[int]], sizes: Array) -> tuple[Level, ...]:
    """Split groups of templates into sets of disjoint ones, those inside others first.

    `sizes` are the features of each template; d_m = log2 of a group's, which is at least 1.
    """
    bits = [sum(1 << template for template in group) for group in groups]
    steps: list[list[int]] = []
    covered: list[int] = []
    for m in sorted(range(len(groups)), key=lambda m: len(groups[m])):
        # Behind the last set that overlaps: a smaller group that lies inside comes before.
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
    """The factors of all sets' steps together, by a threshold or a budget of groups.

    Sets share a budget as the largest ratios fall to them, overlaps disregarded (Martins et al., footnote 5).
    """
    factors = np.ones(len(squares))
    shares = [0] * len(levels) if budget is None else _shares(levels, squares, budget)
    for level, share in zip(levels, shares, strict=True):
        here = squares * factors * factors
        owed = threshold if threshold is not None else budget_threshold(level.ratios(here), share)
        factors *= level.factors(here, owed)
    return factors


def _shares(levels: Sequence[Level], squares: Array, budget: int) -> list[int]:
    if len(levels) == 1:
        return [budget]
    ratios = [level.ratios(squares) for level in levels]
    order = np.argsort(-np.concatenate(ratios), kind="stable")[:budget]
    of = np.repeat(np.arange(len(levels)), [len(each) for each in ratios])
    return [int(share) for share in np.bincount(of[order], minlength=len(levels))]
