"""Resolves features for a corpus: replaces the column names in templates by column numbers, which kernels need."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, get_args

from pydantic import TypeAdapter

from tagsmith.core.base import suggest
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.features.columns.derived import Derived
from tagsmith.core.features.columns.matched.kinds import AnyColumn, MatchedSpec
from tagsmith.core.features.resolved import (
    ALL_WEIGHTS,
    BAG,
    BagTemplate,
    Derivation,
    ExistingWeights,
    Features,
    ResolvedSlot,
    Structure,
)
from tagsmith.core.features.templates.template import (
    ARC_COLUMNS,
    MAX_TEMPLATES,
    Anchor,
    Slot,
    Syntax,
    Take,
    Template,
    checked,
    checked_row,
)

#: The name of the first column of a corpus without column names.
_WORD = "word"


def restored(record: dict[str, Any]) -> Features:
    """Resolve recorded features again, and check all that kernels rely on. Raises ValueError if a check fails."""
    if len(record["templates"]) > MAX_TEMPLATES:
        raise ValueError(f"There are more than {MAX_TEMPLATES} templates.")
    templates = tuple(_restored_template(*each) for each in record["templates"])
    derived = {str(name): _COLUMN.validate_python(each) for name, each in record["derived"]}
    names, structure = [str(name) for name in record["names"]], record["structure"]
    if structure not in get_args(Structure):
        raise ValueError("The structure of the features is unknown.")
    if structure == "tree" and not all(template.over_arcs for template in templates):
        raise ValueError("The features of trees need templates over arcs.")
    if structure != "tree" and any(template.slots and template.over_arcs for template in templates):
        raise ValueError("Only the features of trees have templates over arcs.")
    relations, projective = record.get("relations", True), record.get("projective")
    if not isinstance(relations, bool) or not (projective is None or isinstance(projective, bool)):
        raise ValueError("The record does not say which trees are possible.")
    return resolve_features(
        templates,
        derived,
        names,
        int(record["cutoff"]),
        structure=structure,
        relations=relations,
        projective=projective,
    )


def _restored_template(kind: Any, literals: Any, slots: Any, syntax: Any) -> Template:
    if kind not in ("U", "B") or syntax not in get_args(Syntax) or len(literals) != len(slots) + 1:
        raise ValueError("A template has an unknown kind or syntax, or a wrong number of literals.")
    made = tuple(_restored_slot(*slot) for slot in slots)
    return checked(Template(kind, tuple(map(str, literals)), made, syntax))


def _restored_slot(row: Any, column: Any, anchor: Any, take: Any, regex: Any, fold: Any) -> Slot:
    """Make a slot after checking that its row is in the range that kernels support."""
    sound = (
        isinstance(row, int)
        and (isinstance(column, str) or (isinstance(column, int) and column >= 0))
        and anchor in get_args(Anchor)
        and (anchor != "end" or row < 0)
        and take in get_args(Take)
        and (regex is None or isinstance(regex, str))
    )
    if not sound:
        raise ValueError("A slot of a template is invalid.")
    return Slot(checked_row(row), column, anchor, take, regex, bool(fold))


_COLUMN: TypeAdapter[Derived | MatchedSpec] = TypeAdapter(AnyColumn)


def only(features: Features, kept: Collection[Template]) -> Features:
    """The features with only the templates in `kept`, and the columns that these need."""
    return resolve_features(
        tuple(template for template in (*features.templates, *features.bag_templates) if template in kept),
        dict((*features.described, *features.matched)),
        features.names,
        features.cutoff,
        weights=features.weights,
        structure=features.structure,
        relations=features.relations,
        projective=features.projective,
    )


def resolve_features(
    templates: tuple[Template, ...],
    derived: Mapping[str, Derived | MatchedSpec],
    columns: Sequence[str],
    cutoff: int,
    *,
    weights: ExistingWeights = ALL_WEIGHTS,
    structure: Structure = "chain",
    relations: bool = True,
    projective: bool | None = None,
) -> Features:
    """Number every column that the templates name, or raise Invalid that lists the missing ones.

    `columns` are the names of the corpus's columns.
    """
    found = _Columns(
        {name: each for name, each in derived.items() if isinstance(each, Derived)},
        columns,
        {name: each for name, each in derived.items() if not isinstance(each, Derived)},
    )
    found.check(templates)
    if structure == "independent":
        templates = tuple(template for template in templates if template.kind == "U")
    bag_templates = tuple(filter(found.is_over_bag, templates))
    templates = tuple(template for template in templates if not found.is_over_bag(template))
    bags = found.bags(bag_templates)
    derivations = found.derivations(templates)
    # In the order of the spec, then columns made for a slot: numbers do not depend on the order of the templates.
    order = {name: i for i, name in enumerate(derived)}
    names = sorted(derivations, key=lambda name: order.get(name, len(order)))
    used = {slot.column for template in templates for slot in template.slots if slot.anchor != "arc"}
    matched = [name for name in found.matched if name in used]
    width = max(found.corpus_columns(templates, bags), default=0) + 1
    numbers = {name: width + i for i, name in enumerate([*names, *matched])}

    def resolve(slot: Slot) -> ResolvedSlot:
        if slot.anchor == "arc":
            return ResolvedSlot(slot, ARC_COLUMNS.index(str(slot.column)))
        if slot.column in found.matched:
            return ResolvedSlot(slot, numbers[str(slot.column)])
        derivation = found.derivation(slot, outside=False)
        return ResolvedSlot(slot, numbers[slot.source] if derivation.steps else derivation.of)

    described = found.described((*templates, *bag_templates))
    return Features(
        names=tuple(columns[:width]),
        templates=templates,
        bag_templates=bag_templates,
        bags=bags if columns else (BAG,),
        described=tuple((name, found.derived[name]) for name in described),
        derived=tuple((name, derivations[name]) for name in names),
        matched=tuple((name, found.matched[name]) for name in matched),
        slots=tuple(tuple(map(resolve, t.slots)) for t in templates if t.kind == "U"),
        edge_slots=tuple(tuple(map(resolve, t.slots)) for t in templates if t.kind == "B" and t.slots),
        cutoff=cutoff,
        weights=weights,
        structure=structure,
        relations=relations,
        projective=projective,
    )


#: The most faults that are listed.
_MAX_FAULTS = 100


@dataclass(frozen=True)
class _Columns:
    """All columns that templates can name."""

    derived: Mapping[str, Derived]
    corpus: Sequence[str]
    matched: Mapping[str, MatchedSpec]
    #: What was computed before.
    _steps: dict[int | str, list[str]] = field(default_factory=dict)
    _derivations: dict[tuple[Any, ...], Derivation] = field(default_factory=dict)

    def number(self, column: int | str) -> int | None:
        """The number of a column of the corpus, or None if there is no such column."""
        if isinstance(column, int):
            return column if column < len(self.corpus) else None
        if column in self.corpus:
            return list(self.corpus).index(column)
        return 0 if column == _WORD and self.corpus else None

    def steps(self, column: int | str) -> list[str]:
        """The derived columns from `column` back to the corpus. In a cycle, the first repeated name comes last."""
        if column not in self._steps:
            self._steps[column] = self._walked(column)
        return self._steps[column]

    def _walked(self, column: int | str) -> list[str]:
        names: list[str] = []
        while isinstance(column, str) and column in self.derived:
            if column in names:
                return [*names, column]
            names.append(column)
            column = self.derived[column].of
        return names

    def derivation(self, slot: Slot, *, outside: bool) -> Derivation:
        """How the value of a slot is computed from a column of the corpus."""
        # Templates have many slots, and these have few sources.
        key = (slot.column, slot.take, slot.regex, slot.fold, outside)
        if key not in self._derivations:
            self._derivations[key] = self._derived_as(slot, outside=outside)
        return self._derivations[key]

    def _derived_as(self, slot: Slot, *, outside: bool) -> Derivation:
        names = self.steps(slot.column)
        number = self.number(self.derived[names[-1]].of if names else slot.column)
        assert number is not None
        steps = [self.derived[name] for name in reversed(names)]
        if slot.take != "value":
            steps.append(Derived(kind="regex", pattern=slot.regex, take=slot.take, dialect="wapiti"))
        if slot.fold:
            steps.append(Derived(kind="lower"))
        return Derivation(number, tuple(steps), outside and slot.take != "value")

    def derivations(self, templates: Sequence[Template]) -> dict[str, Derivation]:
        """The derivations that templates need, by the source of their slots."""
        made: dict[str, Derivation] = {}
        for template in templates:
            for slot in template.slots:
                if slot.anchor != "arc" and slot.column not in self.matched:
                    derivation = self.derivation(slot, outside=template.syntax == "wapiti")
                    if derivation.steps:
                        made.setdefault(slot.source, derivation)
        return made

    def corpus_columns(self, templates: Sequence[Template], bags: Sequence[BagTemplate]) -> set[int]:
        """The columns of the corpus that templates and bags read."""
        read = {bag.derivation.of for bag in bags if bag.derivation is not None}
        for template in templates:
            for slot in template.slots:
                if slot.anchor == "arc":
                    continue
                if slot.column in self.matched:
                    read.add(self.matched[str(slot.column)].of)
                else:
                    read.add(self.derivation(slot, outside=False).of)
        return read

    def described(self, templates: Sequence[Template]) -> list[str]:
        """The derived columns that templates need, in the order of the spec."""
        slots = (slot for template in templates for slot in template.slots if slot.anchor != "arc")
        used = {name for slot in slots for name in self.steps(slot.column)}
        return [name for name in self.derived if name in used]

    def is_over_bag(self, template: Template) -> bool:
        """Whether a template reads a bag column."""
        return any(self._is_bag(slot.column) for slot in template.slots)

    def _is_bag(self, column: int | str) -> bool:
        return isinstance(column, str) and column in self.derived and self.derived[column].is_bag

    def bags(self, templates: Sequence[Template]) -> tuple[BagTemplate, ...]:
        """Resolve templates over bag columns. Templates that differ only in the offset become one."""
        made: dict[tuple[str, ...], BagTemplate] = {}
        for template in templates:
            (slot,), (before, after) = template.slots, template.literals
            key = (before, after, slot.source)
            rows = (*(made[key].rows if key in made else ()), slot.row)
            derivation = self.derivation(slot, outside=False)
            made[key] = BagTemplate(before, after, tuple(dict.fromkeys(rows)), derivation)
        return tuple(made.values())

    def check(self, templates: Sequence[Template]) -> None:
        """Raise Invalid if a template or a column refers to a column that does not exist or cannot be used there."""
        found = chain(
            (fault for template in templates for fault in self._faults_of_template(template)),
            (fault for name in self.derived for fault in self._faults_of_derived(name)),
            (fault for name, each in self.matched.items() for fault in self._faults_of_source(name, each.of)),
        )
        faults = list(islice(found, _MAX_FAULTS))
        if faults:
            raise Invalid(
                "The features use columns that are missing or cannot be used this way.",
                faults,
                code="missing_column",
            )

    def _faults_of_template(self, template: Template) -> Iterator[Fault]:
        for reason in self._reasons_of(template):
            yield Fault(f"{template}: {reason}", pointer="/features/templates")

    def _reasons_of(self, template: Template) -> Iterator[str]:
        alone = len(template.slots) == 1 and template.kind == "U"
        for slot in template.slots:
            if slot.anchor == "arc":
                continue
            if self._is_bag(slot.column) and not (alone and slot.plain and slot.anchor == "token"):
                yield f"Column {slot.column!r} has any number of values per token. Use it alone in a U template."
            if isinstance(slot.column, int):
                if self.number(slot.column) is None:
                    yield f"There is no column {slot.column}. {self._have}"
            elif slot.column in self.matched:
                if slot.take != "value" or slot.fold:
                    yield f"Column {slot.column!r} cannot be tested, matched or folded. Use %x."
            elif slot.column not in self.derived and self.number(slot.column) is None:
                named = [*self.derived, *self.matched, *self.corpus, *([_WORD] if self.corpus else ())]
                yield f"{suggest.missing('column', slot.column, named)} {self._have}"

    def _faults_of_derived(self, name: str) -> list[Fault]:
        of = self.derived[name].of
        names = self.steps(name)
        if len(set(names)) < len(names):
            reason = f"These columns are derived from each other: {', '.join(names)}. Break the cycle."
        elif isinstance(of, str) and of in self.derived:
            kind = self.derived[of].kind
            if kind not in ("first", "substrings"):
                return []
            reason = f"A column cannot be derived from {of!r}, which is of kind {kind!r}. Choose another one."
        else:
            return self._faults_of_source(name, of)
        return [Fault(reason, pointer=f"/features/derived/{name}/of")]

    def _faults_of_source(self, name: str, of: int | str) -> list[Fault]:
        if self.number(of) is not None:
            return []
        reason = suggest.missing("column", str(of), [*self.derived, *self.corpus])
        return [Fault(f"{reason} {self._have}", pointer=f"/features/derived/{name}/of")]

    @property
    def _have(self) -> str:
        count = len(self.corpus)
        named = [name for i, name in enumerate(self.corpus) if name != str(i)]
        names = f" and named {', '.join(named)}" if named else ""
        return f"The corpus has {count} attribute column{'s' * (count != 1)}, numbered from 0{names}."
