"""A trained model: only the weights that are not zero, and the vocabularies they need."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.features.columns import Coder
from core.features.index import UNKNOWN, Slots, Table, boundary_row, slots_of
from core.features.settled import Features


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes that kept a weight: their weights as CSR over labels, and the values they stand for."""

    starts: NDArray[np.int64]  # (attributes + 1,)
    labels: NDArray[np.int16]  # label of each weight
    weights: NDArray[np.float32]
    templates: NDArray[np.int16]  # (attributes,) number of the unigram template
    value_starts: NDArray[np.int64]  # (attributes + 1,)
    values: NDArray[np.int32]  # codes of the template's slots

    @property
    def size(self) -> int:
        return len(self.templates)


@dataclass(frozen=True, eq=False)
class Model:
    """Everything tagging needs. Immutable; arrays may be mapped from a file."""

    labels: tuple[str, ...]
    features: Features
    coder: Coder
    table: Table
    attributes: Attributes
    transitions: NDArray[np.float32]  # (labels, labels)

    @property
    def slots(self) -> Slots:
        return slots_of(self.features, self.coder.vocabularies)

    @property
    def active_features(self) -> int:
        return len(self.attributes.weights) + int(np.count_nonzero(self.transitions))

    def attribute_name(self, attribute: int) -> str:
        """Rebuild the name of an attribute, as the template would have written it."""
        template = int(self.attributes.templates[attribute])
        first, last = self.attributes.value_starts[attribute : attribute + 2]
        places = self.features.slots[template]
        vocabularies = self.coder.vocabularies
        values = [
            vocabularies[place.column][code]
            if code >= 0
            else self.features.unigrams[template].boundary(boundary_row(code))
            if code != UNKNOWN
            else "?"
            for place, code in zip(places, self.attributes.values[first:last].tolist(), strict=True)
        ]
        return self.features.unigrams[template].joined(values)
