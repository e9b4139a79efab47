"""What a model has learned: its strongest features and transitions, and how its weights are spread."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import Fault, Invalid
from core.model.model import Attributes, Model
from core.model.templates import attribute_templates, edge_templates

#: Places of weights count through those of attributes, then those of edge attributes.
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FeatureWeight:
    """One weight: of a feature and a label or, where `before` is given, a pair of labels."""

    feature: str
    template: str
    before: str | None
    label: str
    weight: float


@dataclass(frozen=True, slots=True)
class TransitionWeight:
    """The weight of a label behind another."""

    before: str
    after: str
    weight: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many weights that are not zero lie between each two neighbours of `bounds`, by what they are weights of.

    Those of `edge_features` are joined with pairs of labels.
    """

    bounds: list[float]
    features: list[int]
    edge_features: list[int]
    transitions: list[int]


def top_features(
    model: Model, label: str | None, template: str | None, limit: int, after: int | None
) -> tuple[list[FeatureWeight], int | None]:
    """The strongest weights, positive or negative, and where to go on; `after` is where the part before ended."""
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
    model: Model, before: str | None, label: str | None, limit: int, after: int | None
) -> tuple[list[TransitionWeight], int | None]:
    """The strongest weights of label pairs, and where to go on."""
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


def histogram(model: Model, bins: int) -> Histogram:
    """The weights that are not zero, in bins of one width from the lowest to the highest."""
    none = np.empty(0, np.float32)
    edges = none if model.edges is None else model.edges.attributes.weights
    kinds = [model.attributes.weights, edges, model.transitions[model.transitions != 0]]
    every = np.concatenate(kinds)
    bounds = np.histogram_bin_edges(every, bins) if every.size else np.linspace(0.0, 1.0, bins + 1)
    counts = [np.histogram(kind, bounds)[0].tolist() for kind in kinds]
    return Histogram(bounds.tolist(), *counts)


@dataclass(frozen=True, eq=False, slots=True)
class _Kind:
    """The attributes of one kind: those of single labels, or those of label pairs."""

    attributes: Attributes
    names: Sequence[str]  # of templates
    groups: Places  # (attributes,) place of its template in these
    pairs: bool

    @property
    def weights(self) -> NDArray[np.float32]:
        return self.attributes.weights

    def chosen(self, model: Model, label: str | None, template: str | None) -> NDArray[np.bool_]:
        """Whether each weight is of this label and this template."""
        a = self.attributes
        wanted = np.ones(len(a.weights), np.bool_)
        if label is not None:
            wanted &= a.labels % len(model.labels) == model.labels.index(label)
        if template is not None:
            of_template = np.array([name == template for name in self.names], np.bool_)[self.groups]
            wanted &= np.repeat(of_template, np.diff(a.starts))
        return wanted

    def described(self, model: Model, place: int) -> FeatureWeight:
        """One weight by its place."""
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
    """The places of the strongest of the wanted weights, of equals the first; and the last of them when more follow."""
    if after is not None:
        if not 0 <= after < len(weights):
            raise Invalid("The cursor is not one of this list.", code="invalid_cursor")
        strength, last = np.abs(weights[wanted]), abs(weights[after])
        wanted = wanted[(strength < last) | ((strength == last) & (wanted > after))]
    strength = np.abs(weights[wanted])
    if len(wanted) > limit:
        # All as strong as the last that has room, so that of equals the first are taken.
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
        fault = Fault(f"the model has no {value!r}; it has: {shown}", parameter=parameter)
        raise Invalid(f"The {parameter} is not one of the model.", [fault], code=f"unknown_{parameter}")
