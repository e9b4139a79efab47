"""A trained model: only the weights that are not zero, and the vocabularies they need."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.features.columns import Coder
from core.features.index import Slots, Table, edge_slots_of, slots_of
from core.features.preview import named
from core.features.settled import Features, Place
from core.features.several import Family
from core.features.template import Template


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes that kept a weight: their weights as CSR over labels, and the values they stand for.

    First come `singles`, those of templates over one value a token; what the others stand for, their families tell.
    """

    starts: NDArray[np.int64]  # (attributes + 1,)
    #: Label of each weight (int16); of an edge attribute the pair, label before * labels + label (int32).
    labels: NDArray[Any]
    weights: NDArray[np.float32]
    templates: NDArray[np.int16]  # (singles,) number of the template among those of its kind
    value_starts: NDArray[np.int64]  # (singles + 1,)
    values: NDArray[np.int32]  # codes of the template's slots

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @property
    def singles(self) -> int:
        return len(self.templates)


@dataclass(frozen=True, eq=False)
class RichEdges:
    """The edge attributes of a model: those joined with the label pair."""

    table: Table
    attributes: Attributes


@dataclass(frozen=True, eq=False)
class Model:
    """Everything tagging needs. Immutable; arrays may be mapped from a file."""

    labels: tuple[str, ...]
    features: Features
    coder: Coder
    table: Table
    attributes: Attributes
    transitions: NDArray[np.float32]  # (labels, labels)
    edges: RichEdges | None = None
    families: tuple[Family, ...] = ()

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
        """Rebuild the name of an attribute, as the template would have written it."""
        if attribute >= self.attributes.singles:
            return self._name_in_family(attribute)
        template = int(self.attributes.templates[attribute])
        return self._name(
            self.attributes, attribute, self.features.slots[template], self.features.unigrams[template]
        )

    def edge_attribute_name(self, attribute: int) -> str:
        """The same of an edge attribute."""
        assert self.edges is not None
        template = int(self.edges.attributes.templates[attribute])
        return self._name(
            self.edges.attributes, attribute, self.features.edge_slots[template], self.features.rich[template]
        )

    def _name(self, a: Attributes, attribute: int, places: tuple[Place, ...], template: Template) -> str:
        first, last = a.value_starts[attribute : attribute + 2]
        return named(template, places, self.coder.vocabularies, a.values[first:last].tolist())

    def _name_in_family(self, attribute: int) -> str:
        for family in self.families:
            for entry in np.flatnonzero(family.attributes == attribute).tolist():
                return family.spec.name(family.vocabulary[entry])
        raise IndexError(attribute)
