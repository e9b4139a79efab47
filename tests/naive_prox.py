"""A slow, obvious twin of the proximal gradient learner: dense weights, groups as masks, every step on all of them."""

from collections.abc import Callable, Sequence
from math import log2, sqrt

import numpy as np

from tests import naive
from tests.naive import Array, Sentence, Shape, Tie
from tests.naive_online import features

#: Which weights belong to a group.
Mask = np.ndarray


#: Of kernels in float64.
ROUNDING = 1e-9


def decoded(sentence: Sentence, w: Array, attributes: int, cost: float) -> tuple[int, ...]:
    """The labelling that scores highest, where every wrong label adds `cost`; ties go to the lower label."""
    emissions, transitions = sentence.emissions(w[:attributes]), sentence.transitions(w[attributes:])
    emissions += cost
    for t, y in enumerate(sentence.gold):
        emissions[t, y] -= cost
    return naive.clearly_best(emissions, transitions, ROUNDING)


def prox_grad(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    loss: str,
    proximal: Callable[[Array, float], Array],
    *,
    every: int,
    eta0: float,
    start: Array,
    edges: bool = True,
    exists: Array | None = None,
) -> Array:
    """Algorithm 1 of Martins et al.; `proximal(w, share)` pays so much of the penalty."""
    attributes = shape[0]
    w = start.copy()
    for number, order in enumerate(orders, start=1):
        rate, since = eta0 / sqrt(number), 0
        for t, i in enumerate(order, start=1):
            sentence = data[i]
            if loss == "crf":
                step = np.concatenate(naive.gradient(sentence, w[:attributes], w[attributes:], edges))
            else:
                path = decoded(sentence, w, attributes, 1.0 if loss == "svm" else 0.0)
                step = features(sentence, sentence.gold, shape, edges) - features(
                    sentence, path, shape, edges
                )
            w = w + rate * step * (1.0 if exists is None else exists)
            since += 1
            if t % every == 0 or t == len(order):
                w, since = proximal(w, rate * since / len(data)), 0
    return w


def weight_of(group: Mask) -> float:
    return log2(max(2, int(group.sum())))


def shrunk(w: Array, group: Mask, amount: float) -> Array:
    """Take `amount` from the norm of a group."""
    norm = sqrt(float((w[group] ** 2).sum()))
    out = w.copy()
    out[group] = 0.0 if norm <= amount else w[group] * (norm - amount) / norm
    return out


def softened(w: Array, amount: float) -> Array:
    """Take `amount` from the magnitude of every weight."""
    return np.sign(w) * np.maximum(np.abs(w) - amount, 0.0)


def by_strength(w: Array, sets: list[list[Mask]], d: Callable[[Mask], float], amount: float) -> Array:
    """The steps of all sets of disjoint groups, one after another."""
    for groups in sets:
        for group in groups:
            w = shrunk(w, group, amount * d(group))
    return w


def by_budget(
    w: Array,
    sets: list[list[Mask]],
    d: Callable[[Mask], float],
    budget: int,
    rank: str = "norm",
    shrink: str = "plain",
) -> Array:
    """Budget-driven shrinkage; sets share the budget as their groups rank among all. Raises Tie if rounding decides."""

    def height(group: Mask) -> float:
        norm = sqrt(float((w[group] ** 2).sum()))
        return norm / d(group) if rank == "scaled" else norm

    ranked = sorted(
        ((j, height(group)) for j, groups in enumerate(sets) for group in groups), key=lambda each: -each[1]
    )
    chosen = [j for j, _ in ranked[:budget]]
    for j, groups in enumerate(sets):
        share = budget if len(sets) == 1 else chosen.count(j)
        heights = sorted((height(group) for group in groups), reverse=True)
        if sum(h > 0 for h in heights) <= share:
            continue
        upper, lower = heights[max(share - 1, 0)], heights[share]
        if share and upper - lower < ROUNDING and (upper > lower or groups[0].sum() > 1):
            raise Tie
        amount = (upper + lower) / 2
        for group in groups:
            w = shrunk(w, group, amount * (d(group) if shrink == "scaled" else 1.0))
    return w
