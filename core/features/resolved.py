"""Features resolved for a corpus: every column has a number. Derived and matched columns follow the corpus's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tagsmith.core.base.regex import MAX_TEXT
from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.columns.matched.kinds import MatchedSpec
from tagsmith.core.features.templates.template import Slot, Template


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a derived column is computed from a column of the corpus: its steps are applied one after the other."""

    of: int  # the column of the corpus
    steps: tuple[Derived, ...]
    #: Whether the names of positions outside the sentence are derived too, as Wapiti's tests do.
    outside: bool = False

    def parts(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Return the values of a bag column for each value of the corpus."""
        last = self.steps[-1]
        values = Derivation(self.of, self.steps[:-1]).values(texts)
        return [() if value is None else last.parts(value) for value in values]

    @property
    def steps_per_character(self) -> int:
        """The most steps of regular expressions that computing the column takes per character."""
        return sum(step.steps_per_character for step in self.steps)

    @property
    def marks_first(self) -> bool:
        """Whether the column marks the first token of each sentence, which does not depend on the token's value."""
        return self.steps[-1].kind == "first"

    def values(self, texts: Sequence[str]) -> Sequence[str | None]:
        """Return the derived value of each value of the corpus, or None for no value."""
        values: Sequence[str | None] = texts
        for step in self.steps:
            present = iter(step.values([value for value in values if value is not None]))
            values = [None if value is None else next(present) for value in values]
        return values


#: What is predicted: a sequence of labels, each label on its own, or a tree of arcs between words.
Structure = Literal["chain", "independent", "tree"]


class ResolvedSlot(NamedTuple):
    """A slot and the number of its column."""

    slot: Slot
    column: int


@dataclass(frozen=True, slots=True)
class BagTemplate:
    """A template over a bag: a column with any number of values per token. A feature is `before` value `after`."""

    before: str = ""
    after: str = ""
    rows: tuple[int, ...] = (0,)  # the offsets from the token at which the bag is read
    derivation: Derivation | None = None  # None: the bag of attributes that the corpus has for each token

    def same_features(self, other: "BagTemplate") -> bool:
        """Whether equal values make the same features. The offsets do not matter."""
        return (self.before, self.after, self.derivation) == (other.before, other.after, other.derivation)

    def most_characters(self, length: int) -> int:
        """Return the most characters that the values of a text of this length have; 0 for bags of the corpus."""
        if self.derivation is None:
            return 0
        n = self.derivation.steps[-1].n or 0
        return min(length, MAX_TEXT) * n * n // 2

    def name(self, value: str) -> str:
        """The name of a feature."""
        return f"{self.before}{value}{self.after}"


#: The attributes of a corpus with bags are features under their own names.
BAG = BagTemplate()


@dataclass(frozen=True, slots=True)
class ExistingWeights:
    """Which features have a weight: all, or those of the training data, as in CRFsuite."""

    seen_pairs: bool = False  # only attributes and labels that occur together
    seen_transitions: bool = False  # only label pairs that occur
    min_frequency: float = 0.0  # only features whose values sum up to this much

    @property
    def all(self) -> bool:
        """Whether every feature has a weight."""
        return not (self.seen_pairs or self.seen_transitions or self.min_frequency > 0)


#: Every feature has a weight.
ALL_WEIGHTS = ExistingWeights()


@dataclass(frozen=True)
class Features:
    """Features resolved for a corpus. Columns are numbered: those of the corpus, then derived, then matched ones.

    A corpus without columns has a bag of attributes per token, and these are the features.
    """

    names: tuple[str, ...]  # the columns of the corpus, up to the last one used
    templates: tuple[Template, ...]  # over columns with one value per token
    bag_templates: tuple[Template, ...]  # over columns with any number of values per token
    bags: tuple[BagTemplate, ...]  # the resolved `bag_templates`
    #: The specs of the derived columns in use, including those that other derived columns are derived from.
    described: tuple[tuple[str, Derived], ...]
    derived: tuple[tuple[str, Derivation], ...]
    matched: tuple[tuple[str, MatchedSpec], ...]
    #: The slots of each unigram template, in the order of the templates.
    slots: tuple[tuple[ResolvedSlot, ...], ...]
    #: The slots of each template that is joined with the label pair.
    edge_slots: tuple[tuple[ResolvedSlot, ...], ...]
    cutoff: int
    weights: ExistingWeights
    structure: Structure
    #: Trees only. Whether relations are learned, and whether arcs may not cross; None: as in the training trees.
    relations: bool = True
    projective: bool | None = None

    @property
    def independent(self) -> bool:
        """Whether every token is labelled on its own."""
        return self.structure == "independent"

    @property
    def columns(self) -> int:
        """The number of columns that the corpus must have."""
        return len(self.names)

    @property
    def steps_per_character(self) -> int:
        """The most steps of regular expressions that computing all columns takes per character."""
        bags = [bag.derivation for bag in self.bags if bag.derivation is not None]
        return sum(each.steps_per_character for each in (*bags, *(spec for _, spec in self.derived)))

    @property
    def gathers(self) -> bool:
        """Whether a column is made from the labels of the training text."""
        return any(spec.gathers for _, spec in self.matched)

    @property
    def unigrams(self) -> tuple[Template, ...]:
        """The templates that are joined with one label."""
        return tuple(t for t in self.templates if t.kind == "U")

    @property
    def edges(self) -> bool:
        """Whether label pairs by themselves are features: there is a `B` template without slots."""
        return any(t.kind == "B" and not t.slots for t in self.templates)

    @property
    def rich(self) -> tuple[Template, ...]:
        """The templates that are joined with the label pair."""
        return tuple(t for t in self.templates if t.kind == "B" and t.slots)

    def record(self) -> dict[str, Any]:
        """Describe the features in JSON values, which `restored` reads."""
        of_trees = {"relations": self.relations, "projective": self.projective}
        return {
            "names": list(self.names),
            "templates": [
                [
                    t.kind,
                    list(t.literals),
                    [[s.row, s.column, s.anchor, s.take, s.regex, s.fold] for s in t.slots],
                    t.syntax,
                ]
                for t in (*self.templates, *self.bag_templates)
            ],
            "derived": [
                [name, each.model_dump(mode="json", exclude_none=True)]
                for name, each in (*self.described, *self.matched)
            ],
            "cutoff": self.cutoff,
            "structure": self.structure,
            **(of_trees if self.structure == "tree" else {}),
        }
