"""The difference between two models. Weights are matched by the names of features and labels."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.model.model import ModelAttributes, SparseModel


@dataclass(frozen=True, slots=True)
class WeightChange:
    """A weight that differs between two models; 0 if a model does not have it.

    Without a `feature` it is the weight of a transition.
    """

    feature: str | None
    before: str | None
    label: str
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class WeightDifference:
    """Counts of weights that one or both models have, and the weights that differ most."""

    base: int
    head: int
    added: int
    removed: int
    changed: int
    unchanged: int
    top: list[WeightChange]


def weight_difference(base: SparseModel, head: SparseModel, top: int) -> WeightDifference:
    """Compare the weights of two models."""
    labels = _numbered((*base.labels, *head.labels))
    names: dict[str | None, int] = {None: 0}
    models = [_keyed(model, labels, names) for model in (base, head)]
    keys = np.unique(np.concatenate([own for own, _ in models]))
    weights = np.zeros((2, len(keys)))
    present = np.zeros((2, len(keys)), np.bool_)
    for i, (own, values) in enumerate(models):
        at = np.searchsorted(keys, own)
        np.add.at(weights[i], at, values)
        present[i, at] = True
    change = np.abs(weights[1] - weights[0])
    both = present[0] & present[1]
    differing = np.flatnonzero(change)
    order = differing[np.argsort(-change[differing], kind="stable")][:top]
    texts, named = list(names), list(labels)
    return WeightDifference(
        base=int(present[0].sum()),
        head=int(present[1].sum()),
        added=int((~present[0]).sum()),
        removed=int((~present[1]).sum()),
        changed=int((both & (change > 0)).sum()),
        unchanged=int((both & (change == 0)).sum()),
        top=[_described(int(keys[k]), weights[:, k], texts, named) for k in order.tolist()],
    )


def _numbered(names: tuple[str, ...]) -> dict[str, int]:
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def _described(
    key: int, weights: NDArray[np.float64], names: list[str | None], labels: list[str]
) -> WeightChange:
    rest, label = divmod(key, len(labels))
    name, before = divmod(rest, len(labels) + 1)
    return WeightChange(
        names[name],
        labels[before - 1] if before else None,
        labels[label],
        float(weights[0]),
        float(weights[1]),
    )


def _keyed(
    model: SparseModel, labels: dict[str, int], names: dict[str | None, int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the weights of a model, each with a key of its name, the label before (0 for none) and its label."""
    own = np.array([labels[label] for label in model.labels], np.int64)
    count = len(labels)

    def key(
        name: NDArray[np.int64], before: NDArray[np.int64], label: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        return (name * (count + 1) + before) * count + label

    def of_rows(a: ModelAttributes, texts: Iterator[str]) -> NDArray[np.int64]:
        numbers = np.fromiter((names.setdefault(text, len(names)) for text in texts), np.int64, a.size)
        return np.repeat(numbers, np.diff(a.starts))

    a, none = model.attributes, np.zeros(1, np.int64)
    before, after = np.nonzero(model.transitions)
    keys = [key(none, own[before] + 1, own[after]), key(of_rows(a, _names(model)), none, own[a.labels])]
    weights = [model.transitions[before, after], a.weights]
    if model.edges is not None:
        e = model.edges.attributes
        first, second = np.divmod(e.labels.astype(np.int64), len(own))
        texts = (model.edge_attribute_name(i) for i in range(e.size))
        keys.append(key(of_rows(e, texts), own[first] + 1, own[second]))
        weights.append(e.weights)
    return np.concatenate(keys), np.concatenate(weights)


def _names(model: SparseModel) -> Iterator[str]:
    """Yield the names of all attributes, in order. Names of bag features are collected in one pass."""
    singles = model.attributes.singles
    yield from (model.attribute_name(i) for i in range(singles))
    rest = [""] * (model.attributes.size - singles)
    for bag in model.bags:
        for attribute, text in zip(bag.attributes.tolist(), bag.vocabulary.strings(), strict=True):
            rest[attribute - singles] = bag.spec.name(text)
    yield from rest
