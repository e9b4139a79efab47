"""The templates behind the rows of a problem: groups of features that are kept or dropped together.

Templates with the same features count as one template. Such templates differ only in the token positions they read (see
`features.template`). The transitions are a separate template that reads no columns.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tagsmith.core.base.jit import readonly
from tagsmith.core.features.arc_index import ArcIndex
from tagsmith.core.features.columns.bags import BAG_NAME, BagIndex
from tagsmith.core.features.columns.coder import Coder
from tagsmith.core.features.index import FeatureIndex
from tagsmith.core.features.resolved import Features, ResolvedSlot
from tagsmith.core.features.templates.template import Template

#: What a template reads: its kind (labels or label pairs) and, for each position, the ranks of its columns, finest
#: first. Columns are ranked by their number of values: words are finer than parts of speech.
Pattern = tuple[str, dict[tuple[str, int], tuple[int, ...]]]
#: The name of a template, and its pattern if it can be compared.
Found = tuple[str, Pattern | None]


@dataclass(frozen=True, eq=False)
class Templates:
    """The template of each attribute and each edge attribute."""

    names: tuple[str, ...]
    edges: tuple[bool, ...]  # whether the features of each template are combined with label pairs
    patterns: tuple[Pattern | None, ...]  # None: not comparable
    of_attributes: NDArray[np.int16]  # (attributes,)
    of_edge_attributes: NDArray[np.int16]  # (edge attributes,)
    transitions: int | None  # the index of the transitions template, if transitions are features

    def of_rows(self, labels: int) -> NDArray[np.int16]:
        """Return the template of each weight row. Transition rows that are not features are assigned to template 0."""
        transitions = np.full(labels, self.transitions or 0, np.int16)
        edges = np.repeat(self.of_edge_attributes, labels)
        return readonly(np.concatenate([self.of_attributes, transitions, edges]), np.int16)

    def picked(self, used: NDArray[np.bool_], used_edges: NDArray[np.bool_]) -> "Templates":
        """Return the templates restricted to the marked attributes and edge attributes."""
        return replace(
            self,
            of_attributes=readonly(self.of_attributes[used], np.int16),
            of_edge_attributes=readonly(self.of_edge_attributes[used_edges], np.int16),
        )

    def finer(self) -> list[list[int]]:
        """For each template, list it and all templates that it precedes in coarse-to-fine order."""
        numbers = range(len(self.names))
        return [
            [b for b in numbers if a == b or precedes(self.patterns[a], self.patterns[b])] for a in numbers
        ]


def precedes(a: Pattern | None, b: Pattern | None) -> bool:
    """Whether b is at least as fine as a at every position that a reads.

    That is, b reads at least as many columns there, and none of them is coarser.
    """
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
    index: FeatureIndex | ArcIndex,
    edge_index: FeatureIndex | None,
    bags: Sequence[BagIndex],
    attributes: int,
) -> Templates:
    """Find the templates of the attributes of a compiled corpus."""
    finest = np.argsort(np.argsort([len(each) for each in coder.vocabularies], kind="stable"))
    ranks = finest.tolist()
    of_singles, found = _found(index, features.unigrams, features.slots, ranks)
    of_attributes = np.zeros(attributes, np.int16)
    of_attributes[: index.size] = of_singles
    bag_names: dict[tuple[str, str], str] = {}
    for template in features.bag_templates:
        bag_names.setdefault(template.feature_group, template.name)
    for name, bag in zip(list(bag_names.values()) or [BAG_NAME] * len(bags), bags, strict=True):
        of_attributes[bag.attributes[bag.attributes >= 0]] = len(found)
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


def _pattern(template: Template, places: Sequence[ResolvedSlot], ranks: list[int]) -> Pattern:
    looked_at: dict[tuple[str, int], tuple[int, ...]] = {}
    for slot, column in places:
        if slot.anchor == "arc":  # its columns are not ranked among the others
            looked_at[str(slot.column), 0] = (0,)
            continue
        place = (slot.anchor, slot.row)
        looked_at[place] = tuple(sorted((*looked_at.get(place, ()), ranks[column]), reverse=True))
    return template.kind, looked_at


def _found(
    index: FeatureIndex | ArcIndex,
    templates: Sequence[Template],
    slots: Sequence[Sequence[ResolvedSlot]],
    ranks: list[int],
) -> tuple[NDArray[np.int16], list[Found]]:
    """Return the template of each attribute. Templates with the same features are merged and not comparable."""
    made = [template.feature_group for template in templates]
    times = Counter(made)
    found: dict[tuple[str, str], Found] = {}
    for template, places in zip(templates, slots, strict=True):
        alone = times[template.feature_group] == 1
        found.setdefault(
            template.feature_group, (template.name, _pattern(template, places, ranks) if alone else None)
        )
    number = {each: i for i, each in enumerate(found)}
    numbers = np.array([number[each] for each in made], np.int16)
    return numbers[index.seen_at % max(len(made), 1)], list(found.values())
