"""The templates behind the rows of a problem: groups of features that are kept or dropped together.

Templates whose features are the same (they differ in the rows they look at only, see `features.template`) are one. The
transitions are a template of their own, which looks at nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.features.columns import Coder
from core.features.index import FeatureIndex
from core.features.settled import Features, Place
from core.features.several import Family
from core.features.template import Template
from core.jit import readonly
from core.model.templates import BAG_NAME

#: What a template looks at: whether labels or pairs of them, and at each place the ranks of its columns, finest first.
#: A column ranks by the number of its values: words are finer than parts of speech.
Pattern = tuple[str, dict[tuple[str, int], tuple[int, ...]]]
#: A template by its name, and by its pattern where it can be compared.
Found = tuple[str, Pattern | None]


@dataclass(frozen=True, eq=False)
class Templates:
    """Which template each attribute and edge attribute comes from."""

    names: tuple[str, ...]
    edges: tuple[bool, ...]  # whether a template's features are joined with the pair of labels
    patterns: tuple[Pattern | None, ...]  # None: cannot be compared
    of_attributes: NDArray[np.int16]  # (attributes,)
    of_edge_attributes: NDArray[np.int16]  # (edge attributes,)
    transitions: int | None  # the number of the template of the transitions, if they are features

    def of_rows(self, labels: int) -> NDArray[np.int16]:
        """The template of each row of weights. Rows of transitions that are no features count as the first one's."""
        transitions = np.full(labels, self.transitions or 0, np.int16)
        edges = np.repeat(self.of_edge_attributes, labels)
        return readonly(np.concatenate([self.of_attributes, transitions, edges]), np.int16)

    def picked(self, used: NDArray[np.bool_], used_edges: NDArray[np.bool_]) -> "Templates":
        """The templates of only the attributes and edge attributes marked."""
        return replace(
            self,
            of_attributes=readonly(self.of_attributes[used], np.int16),
            of_edge_attributes=readonly(self.of_edge_attributes[used_edges], np.int16),
        )

    def finer(self) -> list[list[int]]:
        """For each template itself and all that it precedes in the order from coarse to fine."""
        numbers = range(len(self.names))
        return [
            [b for b in numbers if a == b or precedes(self.patterns[a], self.patterns[b])] for a in numbers
        ]


def precedes(a: Pattern | None, b: Pattern | None) -> bool:
    """Whether b looks, at every place that a looks at, at least as finely: at as many columns, none of them coarser."""
    if a is None or b is None or a[0] != b[0]:
        return False
    return all(
        len(ranks) <= len(b[1].get(place, ()))
        and all(x <= y for x, y in zip(ranks, b[1][place], strict=False))
        for place, ranks in a[1].items()
    )


def templates_of(
    features: Features,
    coder: Coder,
    index: FeatureIndex,
    edge_index: FeatureIndex | None,
    families: Sequence[Family],
    attributes: int,
) -> Templates:
    """Find the templates of the attributes of a compiled corpus."""
    finest = np.argsort(np.argsort([len(each) for each in coder.vocabularies], kind="stable"))
    ranks = finest.tolist()
    of_singles, found = _found(index, features.unigrams, features.slots, ranks)
    of_attributes = np.zeros(attributes, np.int16)
    of_attributes[: index.size] = of_singles
    several: dict[tuple[str, str], str] = {}
    for template in features.over_several:
        several.setdefault(template.made, template.name)
    for name, family in zip(list(several.values()) or [BAG_NAME] * len(families), families, strict=True):
        of_attributes[family.attributes[family.attributes >= 0]] = len(found)
        found.append((name, None))
    singles, transitions = len(found), None
    if features.edges:
        transitions = len(found)
        alone = next(t.name for t in features.templates if t.kind == "B" and not t.slots)
        found.append((alone, ("B", {})))
    of_edges = np.zeros(0, np.int16)
    if edge_index is not None:
        of_edges, rich = _found(edge_index, features.rich, features.edge_slots, ranks)
        of_edges = of_edges + np.int16(len(found))
        found += rich
    return Templates(
        names=tuple(name for name, _ in found),
        edges=tuple(t >= singles for t in range(len(found))),
        patterns=tuple(pattern for _, pattern in found),
        of_attributes=readonly(of_attributes, np.int16),
        of_edge_attributes=readonly(of_edges, np.int16),
        transitions=transitions,
    )


def _pattern(template: Template, places: Sequence[Place], ranks: list[int]) -> Pattern:
    looked_at: dict[tuple[str, int], tuple[int, ...]] = {}
    for slot, column in places:
        place = (slot.anchor, slot.row)
        looked_at[place] = tuple(sorted((*looked_at.get(place, ()), ranks[column]), reverse=True))
    return template.kind, looked_at


def _found(
    index: FeatureIndex, templates: Sequence[Template], slots: Sequence[Sequence[Place]], ranks: list[int]
) -> tuple[NDArray[np.int16], list[Found]]:
    """The template of each attribute, with those that make the same features as one, which cannot be compared."""
    made = [template.made for template in templates]
    times = Counter(made)
    found: dict[tuple[str, str], Found] = {}
    for template, places in zip(templates, slots, strict=True):
        alone = times[template.made] == 1
        found.setdefault(template.made, (template.name, _pattern(template, places, ranks) if alone else None))
    number = {each: i for i, each in enumerate(found)}
    numbers = np.array([number[each] for each in made], np.int16)
    return numbers[index.seen_at % max(len(made), 1)], list(found.values())
