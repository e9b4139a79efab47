"""Size of each template in a model: features, norm of their weights, bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.features.columns.bags import BAG_NAME
from tagsmith.core.features.templates.template import Template
from tagsmith.core.model.model import ModelAttributes, SparseModel

#: Bytes per attribute without its values and weights: the start of its weights; and if it is in the index, its cell
#: (key and row), its template and the start of its values.
_START_BYTES, _INDEX_BYTES = 8, 12 + 2 + 8
#: Bytes of the code of a value, and of a weight without its label.
_VALUE_BYTES = _WEIGHT_BYTES = 4


@dataclass(frozen=True, slots=True)
class TemplateSize:
    """One template of a model. Templates that make the same features count as one."""

    name: str
    #: Whether its features are features of label pairs.
    edge: bool
    attributes: int
    #: Number of non-zero weights.
    active_features: int
    #: L2 norm of the weights.
    norm: float
    #: Bytes in the model file, without shared vocabularies and empty cells of the index.
    size_bytes: int


def template_sizes(model: SparseModel) -> list[TemplateSize]:
    """Return the templates of a model: of single labels, of bag features, of label pairs, and the pair itself."""
    sizes = _sizes(*attribute_templates(model), model.attributes, edge=False)
    if model.edges is not None:
        sizes += _sizes(*edge_templates(model), model.edges.attributes, edge=True)
    return sizes + _label_pair(model)


def attribute_templates(model: SparseModel) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the templates of single labels, and the template index of each attribute."""
    features = model.features
    names, numbers = _distinct(features.unigrams)
    bag_names, _ = _distinct(features.bag_templates)
    group_of = np.empty(model.attributes.size, np.int64)
    group_of[: model.attributes.singles] = numbers[model.attributes.templates]
    for i, bag in enumerate(model.bags, start=len(names)):
        group_of[bag.attributes] = i
    return names + (bag_names or [BAG_NAME] * len(model.bags)), group_of


def edge_templates(model: SparseModel) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the templates of label pairs, and the template index of each edge attribute."""
    assert model.edges is not None
    names, numbers = _distinct(model.features.rich)
    return names, numbers[model.edges.attributes.templates]


def _distinct(templates: Sequence[Template]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the distinct templates, and the index among them of every template."""
    first: dict[tuple[str, str], int] = {}
    numbers = np.array(
        [first.setdefault(template.feature_group, len(first)) for template in templates], np.int64
    )
    names = {template.feature_group: template.name for template in reversed(templates)}
    return [names[made] for made in first], numbers


def _sizes(
    names: Sequence[str], group_of: NDArray[np.int64], a: ModelAttributes, *, edge: bool
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


def _label_pair(model: SparseModel) -> list[TemplateSize]:
    """Return the label pair itself, if it is a feature."""
    pair = model.transitions
    return [
        TemplateSize(
            template.name, True, 0, int(np.count_nonzero(pair)), float(np.linalg.norm(pair)), pair.nbytes
        )
        for template in model.features.templates
        if template.kind == "B" and not template.slots
    ][:1]
