"""What each template has in a model: features, their norm, and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.features.template import Template
from core.model.model import Attributes, Model

#: Bytes of an attribute, whatever its values and weights: where its weights start, and in an index of templates over
#: one value a token a cell (key and row), its template, and where its values start.
_START_BYTES, _INDEX_BYTES = 8, 12 + 2 + 8
#: A value's code, and a weight without its label.
_VALUE_BYTES = _WEIGHT_BYTES = 4
#: What the attributes of bags are called together: they have names of their own and no template.
BAG_NAME = "attributes"


@dataclass(frozen=True, slots=True)
class TemplateSize:
    """One template of a model. Templates that make the same features are one."""

    name: str
    #: Whether its features are joined with the pair of labels.
    edge: bool
    attributes: int
    #: Weights that are not zero.
    active_features: int
    #: Of these weights, in L2.
    norm: float
    #: Of the model file, without the vocabularies that templates share and the empty cells of the index.
    size_bytes: int


def template_sizes(model: Model) -> list[TemplateSize]:
    """The templates of a model: of single labels, over several values, of label pairs, and the pair by itself."""
    sizes = _sizes(*attribute_templates(model), model.attributes, edge=False)
    if model.edges is not None:
        sizes += _sizes(*edge_templates(model), model.edges.attributes, edge=True)
    return sizes + _label_pair(model)


def attribute_templates(model: Model) -> tuple[list[str], NDArray[np.int64]]:
    """The names of the templates of single labels, and for each attribute the place of its own among them."""
    features = model.features
    names, numbers = _distinct(features.unigrams)
    several, _ = _distinct(features.over_several)
    group_of = np.empty(model.attributes.size, np.int64)
    group_of[: model.attributes.singles] = numbers[model.attributes.templates]
    for i, family in enumerate(model.families, start=len(names)):
        group_of[family.attributes] = i
    return names + (several or [BAG_NAME] * len(model.families)), group_of


def edge_templates(model: Model) -> tuple[list[str], NDArray[np.int64]]:
    """The same of templates of label pairs and of edge attributes."""
    assert model.edges is not None
    names, numbers = _distinct(model.features.rich)
    return names, numbers[model.edges.attributes.templates]


def _distinct(templates: Sequence[Template]) -> tuple[list[str], NDArray[np.int64]]:
    """The names of templates that make features of their own, and the number among them of every template."""
    first: dict[tuple[str, str], int] = {}
    numbers = np.array([first.setdefault(template.made, len(first)) for template in templates], np.int64)
    names = {template.made: template.name for template in reversed(templates)}
    return [names[made] for made in first], numbers


def _sizes(
    names: Sequence[str], group_of: NDArray[np.int64], a: Attributes, *, edge: bool
) -> list[TemplateSize]:
    groups = len(names)
    of_weight = np.repeat(group_of, np.diff(a.starts))
    attributes = np.bincount(group_of, minlength=groups)
    indexed = np.bincount(group_of[: a.singles], minlength=groups)
    values = np.bincount(np.repeat(group_of[: a.singles], np.diff(a.value_starts)), minlength=groups)
    weights = np.bincount(of_weight, minlength=groups)
    squares = np.bincount(of_weight, weights=a.weights.astype(np.float64) ** 2, minlength=groups)
    size_bytes = (
        _START_BYTES * attributes
        + _INDEX_BYTES * indexed
        + _VALUE_BYTES * values
        + (_WEIGHT_BYTES + a.labels.itemsize) * weights
    )
    return [
        TemplateSize(name, edge, int(attributes[i]), int(weights[i]), float(np.sqrt(squares[i])), int(size_bytes[i]))
        for i, name in enumerate(names)
    ]  # fmt: skip


def _label_pair(model: Model) -> list[TemplateSize]:
    """The pair of labels by itself, where it is a feature."""
    pair = model.transitions
    return [
        TemplateSize(
            template.name, True, 0, int(np.count_nonzero(pair)), float(np.linalg.norm(pair)), pair.nbytes
        )
        for template in model.features.templates
        if template.kind == "B" and not template.slots
    ][:1]
