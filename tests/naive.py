"""Slow, obvious twins of the kernels, written from the definitions and sharing no code with them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import exp, log

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sequences(length: int, labels: int) -> Iterator[tuple[int, ...]]:
    """Every labelling of a chain."""
    return product(range(labels), repeat=length)


def score(emissions: Array, transitions: Array, path: Sequence[int]) -> float:
    """Sum of the scores along a path."""
    total = float(sum(emissions[t, y] for t, y in enumerate(path)))
    return total + float(sum(transitions[a, b] for a, b in pairwise(path)))


def log_z(emissions: Array, transitions: Array) -> float:
    """log of the sum over every labelling, shifted so that it cannot overflow."""
    scores = [score(emissions, transitions, path) for path in sequences(*emissions.shape)]
    top = max(scores)
    return top + log(sum(exp(s - top) for s in scores))


def marginals(emissions: Array, transitions: Array) -> tuple[Array, Array]:
    """p(y_t) as (n, Y), and expected transitions summed over the chain as (Y, Y)."""
    n, labels = emissions.shape
    z = log_z(emissions, transitions)
    tokens, pairs = np.zeros((n, labels)), np.zeros((labels, labels))
    for path in sequences(n, labels):
        p = exp(score(emissions, transitions, path) - z)
        for t, y in enumerate(path):
            tokens[t, y] += p
            if t:
                pairs[path[t - 1], y] += p
    return tokens, pairs


def best(emissions: Array, transitions: Array) -> tuple[int, ...]:
    """The labelling with the highest score."""
    return max(sequences(*emissions.shape), key=lambda path: score(emissions, transitions, path))


class Sentence:
    """Attributes (with values) and gold labels of one sentence."""

    def __init__(self, attributes: list[list[tuple[int, float]]], gold: list[int]) -> None:
        self.attributes = attributes
        self.gold = gold

    def emissions(self, weights: Array) -> Array:
        """weights: (attributes, Y)"""
        out = np.zeros((len(self.attributes), weights.shape[1]))
        for t, row in enumerate(self.attributes):
            for a, value in row:
                out[t] += value * weights[a]
        return out


def loss(data: list[Sentence], weights: Array, transitions: Array) -> float:
    """Sum of -log p(gold)."""
    return sum(
        log_z(s.emissions(weights), transitions) - score(s.emissions(weights), transitions, s.gold)
        for s in data
    )


def gradient(sentence: Sentence, weights: Array, transitions: Array) -> tuple[Array, Array]:
    """d log p(gold) / dw by the definition: gold counts less expected counts."""
    by_weight, by_pair = np.zeros_like(weights), np.zeros_like(transitions)
    tokens, pairs = marginals(sentence.emissions(weights), transitions)
    for t, row in enumerate(sentence.attributes):
        for a, value in row:
            by_weight[a] -= value * tokens[t]
            by_weight[a, sentence.gold[t]] += value
    for a, b in zip(sentence.gold, sentence.gold[1:], strict=False):
        by_pair[a, b] += 1
    return by_weight, by_pair - pairs


def sgd(
    data: list[Sentence],
    shape: tuple[int, int],
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
    attributes, labels = shape
    w = np.zeros((attributes + labels, labels))
    met, kept = 0, []
    for order, pass_rates in zip(orders, rates, strict=True):
        for first in range(0, len(order), batch):
            chosen = [data[i] for i in order[first : first + batch]]
            eta = pass_rates[first]
            step = np.zeros_like(w)
            for sentence in chosen:
                by_weight, by_pair = gradient(sentence, w[:attributes], w[attributes:])
                step[:attributes] += eta * by_weight
                if edges:
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
    shape: tuple[int, int],
    orders: list[Sequence[int]],
    rates: list[Sequence[float]],
    l1: float,
) -> tuple[Array, Array]:
    """Zhou's Algorithm 1 around Tsuruoka's cumulative penalty: three trials, factor one half."""
    attributes, labels = shape
    w, q, u = np.zeros((attributes + labels, labels)), np.zeros((attributes + labels, labels)), 0.0

    def updated(sentence: Sentence, eta: float) -> tuple[Array, Array, float]:
        new_w, new_q, new_u = w.copy(), q.copy(), u + eta * l1 / len(data)
        by_weight, by_pair = gradient(sentence, w[:attributes], w[attributes:])
        new_w[:attributes] += eta * by_weight
        new_w[attributes:] += eta * by_pair
        for i in used(sentence):
            for y in range(labels):
                z = new_w[i, y]
                if z > 0:
                    new_w[i, y] = max(0.0, z - (new_u + new_q[i, y]))
                elif z < 0:
                    new_w[i, y] = min(0.0, z + (new_u - new_q[i, y]))
                new_q[i, y] += new_w[i, y] - z
        return new_w, new_q, new_u

    def used(sentence: Sentence) -> list[int]:
        rows = sorted({a for row in sentence.attributes for a, _ in row})
        return rows + (list(range(attributes, attributes + labels)) if len(sentence.gold) > 1 else [])

    def objective(sentence: Sentence, weights: Array) -> float:
        return loss([sentence], weights[:attributes], weights[attributes:]) + l1 / len(data) * float(
            np.abs(weights[used(sentence)]).sum()
        )

    for order, pass_rates in zip(orders, rates, strict=True):
        for k, i in enumerate(order):
            sentence, scheduled = data[i], pass_rates[k]
            initial, rate, flagged = objective(sentence, w), scheduled, False
            tried = []
            for _ in range(3):
                value = objective(sentence, updated(sentence, rate)[0])
                tried.append((value, rate))
                changed = value > initial and not flagged
                flagged = flagged or value > initial
                rate = scheduled * 0.5 if changed else rate * 0.5 if flagged else rate / 0.5
            w, q, u = updated(sentence, min(tried, key=lambda pair: pair[0])[1])
    return w[:attributes], w[attributes:]


def sgd_l1(
    data: list[Sentence],
    shape: tuple[int, int],
    orders: list[Sequence[int]],
    rates: list[Sequence[float]],
    l1: float,
    penalty: str,
    edges: bool,
    batch: int = 1,
) -> tuple[Array, Array]:
    """Tsuruoka's procedures, step by step, over one dense vector of weights; `orders` and `rates` a pass each.

    clipping is done eagerly on every weight at every update, which the lazy kernel must equal.
    """
    attributes, labels = shape
    w, q = np.zeros((attributes + labels, labels)), np.zeros((attributes + labels, labels))
    u = 0.0
    for order, pass_rates in zip(orders, rates, strict=True):
        for first in range(0, len(order), batch):
            chosen = [data[i] for i in order[first : first + batch]]
            eta = pass_rates[first]
            step = np.zeros_like(w)
            used = np.zeros(attributes + labels, bool)
            for sentence in chosen:
                by_weight, by_pair = gradient(sentence, w[:attributes], w[attributes:])
                step[:attributes] += eta * by_weight
                used[[a for row in sentence.attributes for a, _ in row]] = True
                if edges and len(sentence.gold) > 1:
                    step[attributes:] += eta * by_pair
                    used[attributes:] = True
            shrink = eta * l1 / len(data) * len(chosen)
            u += shrink
            if penalty == "naive":
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
