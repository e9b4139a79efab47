"""Slow, obvious twins of the online learners: dense vectors, every labelling enumerated, averages summed outright."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt

import numpy as np

from tests import naive
from tests.naive import Array, Sentence, Shape


def features(sentence: Sentence, path: Sequence[int], shape: Shape, edges: bool) -> Array:
    """phi(x, y) as (rows, labels)."""
    attributes, labels = shape[:2]
    phi = np.zeros((naive.rows_of(shape), labels))
    for row, y in zip(sentence.attributes, path, strict=True):
        for a, value in row:
            phi[a, y] += value
    for t, (before, y) in enumerate(pairwise(path), start=1):
        for block in [0] * edges + [1 + a for a in sentence.edges[t]]:
            phi[attributes + block * labels + before, y] += 1
    return phi


def decoded(
    sentence: Sentence,
    w: Array,
    shape: Shape,
    costs: Sequence[float] | None,
    augmented: bool,
    total: str = "sum",
) -> tuple[tuple[int, ...], float]:
    """The labelling that violates the margin most, or that scores most, and by how much it violates the margin.

    Raises Tie if rounding decides which labelling that is.
    """
    attributes = shape[0]
    emissions, transitions = sentence.emissions(w[:attributes]), sentence.transitions(w[attributes:])
    gold = naive.score(emissions, transitions, sentence.gold)
    if costs is not None and total != "sum":
        predicted = naive.clearly_best(emissions, transitions)
        wrong = sum(costs[y] for y, found in zip(sentence.gold, predicted, strict=True) if found != y)
        ahead = naive.score(emissions, transitions, predicted) - gold
        return predicted, ahead + (
            sqrt(wrong) if total == "root" else float(predicted != tuple(sentence.gold))
        )
    costly = emissions.copy()
    if costs is not None:
        for t, y in enumerate(sentence.gold):
            costly[t] += costs[y]
            costly[t, y] -= costs[y]
    path = naive.clearly_best(costly if augmented else emissions, transitions)
    return path, naive.score(costly, transitions, path) - gold


def online(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    rule: str,
    *,
    limit: float = 1.0,
    costs: Sequence[float] | None = None,
    augmented: bool = True,
    total: str = "sum",
    edges: bool = True,
    batch: int = 1,
    exists: Array | None = None,
    start: Array | None = None,
) -> tuple[Array, Array]:
    """(last weights, mean of the weights after each update). Raises Tie if rounding decides a labelling."""
    attributes, labels = shape[:2]
    w = np.zeros((naive.rows_of(shape), labels)) if start is None else start.copy()
    variance = np.ones_like(w)
    summed, updates = np.zeros_like(w), 0
    for order in orders:
        for first in range(0, len(order), batch):
            d, loss = np.zeros_like(w), 0.0
            for i in order[first : first + batch]:
                sentence = data[i]
                if rule == "dca-crf":
                    by_weight, by_pair = naive.gradient(sentence, w[:attributes], w[attributes:], edges)
                    d[:attributes] += by_weight
                    d[attributes:] += by_pair
                    loss += naive.loss([sentence], w[:attributes], w[attributes:])
                else:
                    path, violation = decoded(sentence, w, shape, costs, augmented, total)
                    d += features(sentence, sentence.gold, shape, edges) - features(
                        sentence, path, shape, edges
                    )
                    loss += max(violation, 0.0)
            if exists is not None:
                d *= exists
            norm = float((d * d).sum())
            if norm > 0 and (loss > 0 or rule == "perceptron"):
                if rule == "arow":
                    alpha = loss / (limit + float((d * d * variance).sum()))
                    w = w + alpha * variance * d
                    variance = 1 / (1 / variance + d * d / limit)
                elif rule == "cw":
                    m, spread = float((w * d).sum()), float((d * d * variance).sum())
                    b = 1 + 2 * limit * m
                    root = sqrt(max(b * b - 8 * limit * (m - limit * spread), 0.0))
                    alpha = max((-b + root) / (4 * limit * spread), 0.0)
                    w = w + alpha * variance * d
                    variance = 1 / (1 / variance + 2 * alpha * limit * d * d)
                elif rule == "perceptron":
                    w = w + d
                elif rule == "pa-2":
                    w = w + loss / (norm + 0.5 / limit) * d
                else:
                    w = w + min(limit, loss / norm) * d
            updates += 1
            summed += w
    return w, summed / updates


def exponential(x: Array) -> Array:
    """What weights are multiplied with for a decay of x, as the kernels do it."""
    return np.exp(-x)


def published(x: Array) -> Array:
    """The same as published."""
    return 1 - x


def batch_gradient(chosen: list[Sentence], w: Array, shape: Shape) -> tuple[Array, Array]:
    """(the sum of the gradients of log p(y | x) over a batch, which rows it uses)."""
    attributes = shape[0]
    g, used = np.zeros_like(w), np.zeros(len(w), bool)
    for sentence in chosen:
        by_weight, by_pair = naive.gradient(sentence, w[:attributes], w[attributes:])
        g[:attributes] += by_weight
        g[attributes:] += by_pair
        used[sentence.used(shape)] = True
    return g, used


def adf(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    c: float,
    l2: float,
    *,
    q: int,
    alpha: float,
    beta: float,
    batch: int = 1,
    shrink: Callable[[Array], Array] = exponential,
) -> Array:
    """Sun, Li, Wang & Lu 2014, Figure 1, for batches; q in updates.

    The gradient of one sample is that of l(z, w) - |w|^2 / (2 n sigma^2), with 1 / sigma^2 = l2 (section 3.1). So a
    batch of b samples brings b l2 / n times w, however many samples other batches have.
    """
    w = np.zeros((naive.rows_of(shape), shape[1]))
    gamma, v, t = np.full((len(w), 1), c), np.zeros((len(w), 1)), 0
    for order in orders:
        for first in range(0, len(order), batch):
            chosen = [data[i] for i in order[first : first + batch]]
            g, used = batch_gradient(chosen, w, shape)
            v[used] += 1
            w = shrink(gamma * len(chosen) * l2 / len(data)) * w + gamma * g
            t += 1
            if t % q == 0:
                u = v / q
                gamma, v = (alpha - u * (alpha - beta)) * gamma, np.zeros_like(v)
    return w


def madf(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    etas: list[Sequence[float]],
    l2: float,
    *,
    b: Array,
    batch: int = 1,
    shrink: Callable[[Array], Array] = exponential,
) -> Array:
    """He & Wang 2012, section 2.4: w <- w + eta B g with a fixed diagonal B, and g as in `adf`."""
    w = np.zeros((naive.rows_of(shape), shape[1]))
    for order, pass_etas in zip(orders, etas, strict=True):
        for first in range(0, len(order), batch):
            chosen = [data[i] for i in order[first : first + batch]]
            g, _ = batch_gradient(chosen, w, shape)
            rate = pass_etas[first] * b
            w = shrink(rate * len(chosen) * l2 / len(data)) * w + rate * g
    return w
