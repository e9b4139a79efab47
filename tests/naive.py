"""Slow, obvious twins of the kernels, written from the definitions and sharing no code with them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import exp

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Whether a labelling counts.
Keep = Callable[[Sequence[int]], bool]


def sequences(length: int, labels: int) -> Iterator[tuple[int, ...]]:
    """Every labelling of a chain."""
    return product(range(labels), repeat=length)


def score(emissions: Array, transitions: Array, path: Sequence[int]) -> float:
    """Sum of the scores along a path. Transitions are (Y, Y), or (n, Y, Y) with those into each token."""
    return float(_along(emissions, transitions, np.array([path], np.int64))[0])


def scored(
    emissions: Array, transitions: Array, keep: Keep = lambda _: True
) -> tuple[NDArray[np.int64], Array]:
    """Every labelling to `keep`, (paths, n), and the sum of the scores along each."""
    n, labels = emissions.shape
    paths = np.array([path for path in sequences(n, labels) if keep(path)], np.int64).reshape(-1, n)
    return paths, _along(emissions, transitions, paths)


def _along(emissions: Array, transitions: Array, paths: NDArray[np.int64]) -> Array:
    n = paths.shape[1]
    if transitions.ndim == 2:
        transitions = np.broadcast_to(transitions, (n, *transitions.shape))
    totals = np.zeros(len(paths))
    for t in range(n):
        totals += emissions[t, paths[:, t]]
        if t:
            totals += transitions[t, paths[:, t - 1], paths[:, t]]
    return totals


def log_z(emissions: Array, transitions: Array, keep: Keep = lambda _: True) -> float:
    """log of the sum over every labelling, shifted so that it cannot overflow."""
    _, totals = scored(emissions, transitions, keep)
    return float(totals.max() + np.log(np.exp(totals - totals.max()).sum()))


def marginals(emissions: Array, transitions: Array, keep: Keep = lambda _: True) -> tuple[Array, Array]:
    """p(y_t) as (n, Y), and p(y_{t-1}, y_t) as (n, Y, Y), nothing at t = 0; of the labellings to `keep`."""
    n, labels = emissions.shape
    paths, totals = scored(emissions, transitions, keep)
    p = np.exp(totals - log_z(emissions, transitions, keep))
    tokens, pairs = np.zeros((n, labels)), np.zeros((n, labels, labels))
    for t in range(n):
        np.add.at(tokens[t], paths[:, t], p)
        if t:
            np.add.at(pairs[t], (paths[:, t - 1], paths[:, t]), p)
    return tokens, pairs


def best(emissions: Array, transitions: Array) -> tuple[int, ...]:
    """The labelling with the highest score."""
    paths, totals = scored(emissions, transitions)
    return tuple(paths[totals.argmax()].tolist())


class Tie(Exception):
    """Two labellings, norms of groups, or signs of a weight are the same but for rounding: either may be taken."""


#: Scores closer than this may be in another order when they are computed in float32.
ROUNDING = 1e-5


def clearly_best(emissions: Array, transitions: Array, rounding: float = ROUNDING) -> tuple[int, ...]:
    """The labelling with the highest score; of equals that with lower labels. Raises Tie if rounding decides."""
    paths, totals = scored(emissions, transitions)
    behind = totals.max() - totals
    if ((behind > 0) & (behind < rounding)).any():
        raise Tie
    return min(map(tuple, paths[behind == 0].tolist()), key=lambda path: path[::-1])


def nbest(
    emissions: Array, transitions: Array, k: int, keep: Keep = lambda _: True
) -> list[tuple[tuple[int, ...], float]]:
    """The k labellings with the highest scores, each with its probability; of equals by their labels from the end."""
    z = log_z(emissions, transitions, keep)
    paths, totals = scored(emissions, transitions, keep)
    found = sorted(
        zip(map(tuple, paths.tolist()), totals.tolist(), strict=True), key=lambda f: (-f[1], f[0][::-1])
    )
    return [(path, exp(total - z)) for path, total in found[:k]]


def entropy(emissions: Array, transitions: Array, keep: Keep = lambda _: True) -> float:
    """The entropy of the labelling, in nats; of the labellings to `keep`."""
    _, totals = scored(emissions, transitions, keep)
    log_p = totals - log_z(emissions, transitions, keep)
    return float(-(np.exp(log_p) * log_p).sum())


def least_risk(emissions: Array, transitions: Array, keep: Keep = lambda _: True) -> tuple[int, ...]:
    """The labelling of which most labels are right by expectation."""
    tokens, _ = marginals(emissions, transitions, keep)
    paths, hopes = scored(tokens, np.zeros((tokens.shape[1],) * 2), keep)
    return tuple(paths[hopes.argmax()].tolist())


#: Attributes, labels and, where there are any, edge attributes.
Shape = tuple[int, int] | tuple[int, int, int]


def rows_of(shape: Shape) -> int:
    """Rows of weights: one an attribute, one a label before another, and one a label of each edge attribute."""
    return shape[0] + shape[1] * (1 + sum(shape[2:]))


class Sentence:
    """Attributes (with values), gold labels, and edge attributes of one sentence."""

    def __init__(
        self,
        attributes: list[list[tuple[int, float]]],
        gold: list[int],
        edges: list[list[int]] | None = None,
    ) -> None:
        self.attributes = attributes
        self.gold = gold
        self.edges = edges or [[] for _ in gold]

    def transitions(self, weights: Array) -> Array:
        """Transitions into each token, from the rows behind those of attributes."""
        labels = weights.shape[1]
        blocks = weights.reshape(-1, labels, labels)
        return np.array([blocks[0] + sum(blocks[1 + a] for a in row) for row in self.edges])

    def used(self, shape: Shape, edges: bool = True) -> list[int]:
        """The rows of weights that the sentence has features of; `edges` says if label pairs alone are features."""
        attributes, labels = shape[:2]
        rows = {a for row in self.attributes for a, _ in row}
        if edges and len(self.gold) > 1:
            rows |= set(range(attributes, attributes + labels))
        for a in {a for row in self.edges for a in row}:
            rows |= set(range(attributes + (1 + a) * labels, attributes + (2 + a) * labels))
        return sorted(rows)

    def emissions(self, weights: Array) -> Array:
        """weights: (attributes, Y)"""
        out = np.zeros((len(self.attributes), weights.shape[1]))
        for t, row in enumerate(self.attributes):
            for a, value in row:
                out[t] += value * weights[a]
        return out


def loss(data: list[Sentence], weights: Array, transitions: Array) -> float:
    """Sum of -log p(gold)."""
    total = 0.0
    for s in data:
        emissions, own = s.emissions(weights), s.transitions(transitions)
        total += log_z(emissions, own) - score(emissions, own, s.gold)
    return total


def gradient(
    sentence: Sentence, weights: Array, transitions: Array, edges: bool = True
) -> tuple[Array, Array]:
    """d log p(gold) / dw by the definition: gold counts less expected counts."""
    by_weight, by_pair = np.zeros_like(weights), np.zeros_like(transitions)
    blocks = by_pair.reshape(-1, transitions.shape[1], transitions.shape[1])
    tokens, pairs = marginals(sentence.emissions(weights), sentence.transitions(transitions))
    for t, row in enumerate(sentence.attributes):
        for a, value in row:
            by_weight[a] -= value * tokens[t]
            by_weight[a, sentence.gold[t]] += value
        for block in [0] * edges + [1 + a for a in sentence.edges[t]]:
            blocks[block] -= pairs[t]
            if t:
                blocks[block, sentence.gold[t - 1], sentence.gold[t]] += 1
    return by_weight, by_pair


def sgd(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    rates: list[Sequence[float]],
    l2: float,
    edges: bool,
    batch: int = 1,
    mean_from: float | None = None,
) -> tuple[Array, Array]:
    """w <- (1 - eta l2 / N) w + eta gradient, on every weight at every update.

    With `mean_from` the mean of the weights after each update that begins at or beyond so many sequences.
    """
    attributes, labels = shape[:2]
    w = np.zeros((rows_of(shape), labels))
    met, kept = 0, []
    for order, pass_rates in zip(orders, rates, strict=True):
        for first in range(0, len(order), batch):
            chosen = [data[i] for i in order[first : first + batch]]
            eta = pass_rates[first]
            step = np.zeros_like(w)
            for sentence in chosen:
                by_weight, by_pair = gradient(sentence, w[:attributes], w[attributes:], edges)
                step[:attributes] += eta * by_weight
                step[attributes:] += eta * by_pair
            w = (1 - eta * l2 / len(data) * len(chosen)) * w + step
            if mean_from is not None and met >= mean_from:
                kept.append(w)
            met += len(chosen)
    if kept:
        w = np.mean(kept, axis=0)
    return w[:attributes], w[attributes:]


def sgd_l1_searched(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    rates: list[Sequence[float]],
    l1: float,
    sufficient: float,
    penalty: str = "cumulative",
) -> tuple[Array, Array]:
    """Zhou's Algorithm 1 around Tsuruoka's penalties: three trials, factor one half.

    Trials lie on the line from the weights with what they owe paid to those after the scheduled step. A trial is worse
    when the sample's objective falls by less than a part of what its slope promises.
    """
    attributes, labels = shape[:2]
    w, q, u = np.zeros((rows_of(shape), labels)), np.zeros((rows_of(shape), labels)), 0.0

    def slope(sentence: Sentence) -> Array:
        return np.concatenate(gradient(sentence, w[:attributes], w[attributes:]))

    def updated(sentence: Sentence, eta: float) -> tuple[Array, Array, float]:
        new_w, new_q, new_u = w + eta * slope(sentence), q.copy(), u + eta * l1 / len(data)
        if penalty == "clipping":
            return np.sign(new_w) * np.maximum(np.abs(new_w) - (new_u - u), 0), q, new_u
        for i in sentence.used(shape):
            for y in range(labels):
                z = new_w[i, y]
                if z > 0:
                    new_w[i, y] = max(0.0, z - (new_u + new_q[i, y]))
                elif z < 0:
                    new_w[i, y] = min(0.0, z + (new_u - new_q[i, y]))
                new_q[i, y] += new_w[i, y] - z
        return new_w, new_q, new_u

    def best_rate(sentence: Sentence, scheduled: float) -> float:
        before, after = updated(sentence, 0.0)[0], updated(sentence, scheduled)[0]
        used = sentence.used(shape)

        def objective(rate: float) -> float:
            part = rate / scheduled
            there = before + part * (after - before)
            norms = [np.abs(weights[used]).sum() for weights in (before, after)]
            norm = norms[0] + part * (norms[1] - norms[0])
            return float(loss([sentence], there[:attributes], there[attributes:]) + l1 / len(data) * norm)

        promised = float((slope(sentence) * (after - before)).sum()) / scheduled
        initial, rate, flagged, tried = objective(0.0), scheduled, False, []
        for _ in range(3):
            value = objective(rate)
            worse = value > initial - sufficient * rate * promised
            tried.append((worse, value, rate))
            rate = scheduled * 0.5 if worse and not flagged else rate * 0.5 if flagged else rate / 0.5
            flagged = flagged or worse
        good = [(value, rate) for worse, value, rate in tried if not worse]
        return min(good)[1] if good else min(rate for _, _, rate in tried)

    for order, pass_rates in zip(orders, rates, strict=True):
        for k, i in enumerate(order):
            w, q, u = updated(data[i], best_rate(data[i], pass_rates[k]))
    return w[:attributes], w[attributes:]


def sgd_l1(
    data: list[Sentence],
    shape: Shape,
    orders: list[Sequence[int]],
    rates: list[Sequence[float]],
    l1: float,
    penalty: str,
    edges: bool,
    batch: int = 1,
    start: Array | None = None,
) -> tuple[Array, Array]:
    """Tsuruoka's procedures, step by step, over one dense vector of weights; `orders` and `rates` a pass each.

    clipping is done eagerly on every weight at every update, which the lazy kernel must equal. The naive penalty raises
    Tie if rounding decides the sign of a weight.
    """
    attributes, labels = shape[:2]
    w, q = np.zeros((rows_of(shape), labels)), np.zeros((rows_of(shape), labels))
    u = 0.0
    if start is not None:
        w = start.copy()
    for order, pass_rates in zip(orders, rates, strict=True):
        for first in range(0, len(order), batch):
            chosen = [data[i] for i in order[first : first + batch]]
            eta = pass_rates[first]
            step = np.zeros_like(w)
            used = np.zeros(len(w), bool)
            for sentence in chosen:
                by_weight, by_pair = gradient(sentence, w[:attributes], w[attributes:], edges)
                step[:attributes] += eta * by_weight
                step[attributes:] += eta * by_pair
                used[sentence.used(shape, edges)] = True
            shrink = eta * l1 / len(data) * len(chosen)
            u += shrink
            if penalty == "naive":
                if ((w != 0) & (np.abs(w) < ROUNDING)).any():
                    raise Tie
                w = w - shrink * np.sign(w) + step
            elif penalty == "clipping":
                w = w + step
                w = np.sign(w) * np.maximum(np.abs(w) - shrink, 0)
            else:
                w = w + step
                for i in np.flatnonzero(used):
                    for y in range(labels):
                        z = w[i, y]
                        if z > 0:
                            w[i, y] = max(0.0, z - (u + q[i, y]))
                        elif z < 0:
                            w[i, y] = min(0.0, z + (u - q[i, y]))
                        q[i, y] += w[i, y] - z
    return w[:attributes], w[attributes:]
