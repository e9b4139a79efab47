"""Inspection of a model: its strongest features and transitions, and the distribution of its weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.model.model import ModelAttributes, SparseModel
from tagsmith.core.model.templates import attribute_templates, edge_templates

#: Positions of weights: first those of attributes, then those of edge attributes.
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FeatureWeight:
    """One weight of a feature and a label or, if `before` is given, a label pair."""

    feature: str
    template: str
    before: str | None
    label: str
    weight: float


@dataclass(frozen=True, slots=True)
class TransitionWeight:
    """The weight of a transition from one label to another."""

    before: str
    after: str
    weight: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of non-zero weights between neighbouring `bounds`, by kind.

    `edge_features` are features of label pairs.
    """

    bounds: list[float]
    features: list[int]
    edge_features: list[int]
    transitions: list[int]


def attribute_names(model: SparseModel) -> list[str]:
    """Return the names of all attributes, in order; faster than one call of `attribute_name` for each."""
    names = [model.attribute_name(attribute) for attribute in range(model.attributes.singles)]
    names += [""] * (model.attributes.size - len(names))
    for bag in model.bags:
        for name, attribute in zip(bag.vocabulary.strings(), bag.attributes.tolist(), strict=True):
            if attribute >= 0:
                names[attribute] = bag.spec.name(name)
    return names


def top_features(
    model: SparseModel, label: str | None, template: str | None, limit: int, after: int | None
) -> tuple[list[FeatureWeight], int | None]:
    """Return the strongest weights, positive or negative, and the position to continue from.

    `after` is the position at which the previous page ended.
    """
    parts = [_Kind(model.attributes, *attribute_templates(model), pairs=False)]
    if model.edges is not None:
        parts.append(_Kind(model.edges.attributes, *edge_templates(model), pairs=True))
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    _check_known("template", template, names)
    _check_known("label", label, model.labels)
    weights = np.concatenate([part.weights for part in parts])
    wanted = np.concatenate([part.chosen(model, label, template) for part in parts])
    places, rest = _strongest(weights, np.flatnonzero(wanted), limit, after)
    first = len(parts[0].weights)
    found = [
        parts[0].described(model, place) if place < first else parts[1].described(model, place - first)
        for place in places
    ]
    return found, rest


def top_transitions(
    model: SparseModel, before: str | None, label: str | None, limit: int, after: int | None
) -> tuple[list[TransitionWeight], int | None]:
    """Return the strongest transitions, and the position to continue from."""
    _check_known("before", before, model.labels)
    _check_known("label", label, model.labels)
    weights = model.transitions.reshape(-1)
    wanted = model.transitions != 0
    if before is not None:
        wanted[np.arange(len(model.labels)) != model.labels.index(before)] = False
    if label is not None:
        wanted[:, np.arange(len(model.labels)) != model.labels.index(label)] = False
    places, rest = _strongest(weights, np.flatnonzero(wanted), limit, after)
    count = len(model.labels)
    return [
        TransitionWeight(model.labels[place // count], model.labels[place % count], float(weights[place]))
        for place in places
    ], rest


def histogram(model: SparseModel, bins: int) -> Histogram:
    """Count the non-zero weights in bins of equal width from the lowest to the highest."""
    none = np.empty(0, np.float32)
    edges = none if model.edges is None else model.edges.attributes.weights
    kinds = [model.attributes.weights, edges, model.transitions[model.transitions != 0]]
    every = np.concatenate(kinds)
    bounds = np.histogram_bin_edges(every, bins) if every.size else np.linspace(0.0, 1.0, bins + 1)
    counts = [np.histogram(kind, bounds)[0].tolist() for kind in kinds]
    return Histogram(bounds.tolist(), *counts)


@dataclass(frozen=True, eq=False, slots=True)
class _Kind:
    """The attributes of one kind: of single labels, or of label pairs."""

    attributes: ModelAttributes
    names: Sequence[str]  # of templates
    groups: Places  # (attributes,) index of its template in `names`
    pairs: bool

    @property
    def weights(self) -> NDArray[np.float32]:
        return self.attributes.weights

    def chosen(self, model: SparseModel, label: str | None, template: str | None) -> NDArray[np.bool_]:
        """Whether each weight belongs to this label and this template."""
        a = self.attributes
        wanted = np.ones(len(a.weights), np.bool_)
        if label is not None:
            wanted &= a.labels % len(model.labels) == model.labels.index(label)
        if template is not None:
            of_template = np.array([name == template for name in self.names], np.bool_)[self.groups]
            wanted &= np.repeat(of_template, np.diff(a.starts))
        return wanted

    def described(self, model: SparseModel, place: int) -> FeatureWeight:
        """Describe the weight at a position."""
        a = self.attributes
        attribute = int(np.searchsorted(a.starts, place, side="right")) - 1
        before, label = divmod(int(a.labels[place]), len(model.labels))
        return FeatureWeight(
            model.edge_attribute_name(attribute) if self.pairs else model.attribute_name(attribute),
            self.names[self.groups[attribute]],
            model.labels[before] if self.pairs else None,
            model.labels[label],
            float(a.weights[place]),
        )


def _strongest(
    weights: NDArray[np.float32], wanted: Places, limit: int, after: int | None
) -> tuple[list[int], int | None]:
    """Return the positions of the strongest of the wanted weights, and the last position if more follow.

    Among equal weights the first come first.
    """
    if after is not None:
        if not 0 <= after < len(weights):
            raise Invalid(
                "The cursor is not from this list. Start again without a cursor.", code="invalid_cursor"
            )
        strength, last = np.abs(weights[wanted]), abs(weights[after])
        wanted = wanted[(strength < last) | ((strength == last) & (wanted > after))]
    strength = np.abs(weights[wanted])
    if len(wanted) > limit:
        # Include all that equal the weakest of these, so that among equals the first are taken.
        least = np.partition(strength, len(wanted) - limit)[len(wanted) - limit]
        near = np.flatnonzero(strength >= least)
    else:
        near = np.arange(len(wanted))
    order = near[np.argsort(-strength[near], kind="stable")][:limit]
    places = wanted[order].tolist()
    return places, places[-1] if len(wanted) > limit else None


def _check_known(parameter: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        shown = ", ".join(known[:20])
        fault = Fault(f"The model has no {value!r}; it has: {shown}.", parameter=parameter)
        raise Invalid(f"The model does not have this {parameter}.", [fault], code=f"unknown_{parameter}")
