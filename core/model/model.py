"""A trained model: the non-zero weights, and the vocabularies they need."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.hash_table import Table
from tagsmith.core.features.arc_values import ArcPlaces, arc_places_of
from tagsmith.core.features.arcs import ArcSlots, arc_slots_of
from tagsmith.core.features.columns.bags import BagIndex
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.index import Slots, edge_slots_of, slots_of
from tagsmith.core.features.preview import named
from tagsmith.core.features.resolved import Features, ResolvedSlot
from tagsmith.core.features.templates.template import Template
from tagsmith.core.inference.tree.rules import TreeRules
from tagsmith.core.model.use.usage import UNKNOWN, Usage


@dataclass(frozen=True, eq=False)
class ModelAttributes:
    """The attributes with a non-zero weight: weights as CSR over labels, and the values of each attribute.

    First come the `singles`, the attributes of templates with one value per token. Bag attributes follow; the bags name
    them. Models of trees also have attributes without a weight: those that must be found for others to be looked up.
    """

    starts: NDArray[np.int64]  # (attributes + 1,)
    #: Label of each weight (int16). For edge attributes the label pair: label before * labels + label (int32).
    labels: NDArray[Any]
    weights: NDArray[np.float32]
    templates: NDArray[np.int16]  # (singles,) index of the template among those of its kind
    value_starts: NDArray[np.int64]  # (singles + 1,)
    values: NDArray[np.int32]  # codes of the values of the template's slots

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @property
    def singles(self) -> int:
        return len(self.templates)


@dataclass(frozen=True, eq=False)
class EdgeAttributes:
    """The edge attributes of a model: those of label pairs."""

    table: Table
    attributes: ModelAttributes


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A model with everything that tagging or parsing needs. Immutable; its arrays can be mapped from a file.

    The first label of a parser is `HEAD`: its weights score arcs. The others are relations.
    """

    labels: tuple[str, ...]
    features: Features
    coder: Coder
    table: Table
    attributes: ModelAttributes
    transitions: NDArray[np.float32]  # (labels, labels) zeros in a parser
    edges: EdgeAttributes | None = None
    bags: tuple[BagIndex, ...] = ()
    usage: Usage = UNKNOWN
    trees: TreeRules | None = None  # of a parser

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations of a parser."""
        return self.labels[1:] if self.trees is not None else ()

    @property
    def arc_slots(self) -> ArcSlots:
        return arc_slots_of(self.features, self.coder.vocabularies)

    @property
    def arc_places(self) -> ArcPlaces:
        return arc_places_of(self.features)

    @property
    def slots(self) -> Slots:
        return slots_of(self.features, self.coder.vocabularies)

    @property
    def edge_slots(self) -> Slots:
        return edge_slots_of(self.features, self.coder.vocabularies)

    @property
    def active_features(self) -> int:
        edges = 0 if self.edges is None else len(self.edges.attributes.weights)
        return len(self.attributes.weights) + int(np.count_nonzero(self.transitions)) + edges

    def attribute_name(self, attribute: int) -> str:
        """Return the name of an attribute, as its template writes it."""
        if attribute >= self.attributes.singles:
            return self._name_in_bag(attribute)
        template = int(self.attributes.templates[attribute])
        return self._name(
            self.attributes, attribute, self.features.slots[template], self.features.unigrams[template]
        )

    def edge_attribute_name(self, attribute: int) -> str:
        """Return the name of an edge attribute."""
        assert self.edges is not None
        template = int(self.edges.attributes.templates[attribute])
        return self._name(
            self.edges.attributes, attribute, self.features.edge_slots[template], self.features.rich[template]
        )

    def _name(
        self, a: ModelAttributes, attribute: int, places: tuple[ResolvedSlot, ...], template: Template
    ) -> str:
        first, last = a.value_starts[attribute : attribute + 2]
        return named(template, places, self.coder.vocabularies, a.values[first:last].tolist())

    def _name_in_bag(self, attribute: int) -> str:
        for bag in self.bags:
            for entry in np.flatnonzero(bag.attributes == attribute).tolist():
                return bag.spec.name(bag.vocabulary[entry])
        raise IndexError(attribute)
