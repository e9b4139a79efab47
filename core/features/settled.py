"""Features settled for a corpus: every column by number, derived ones behind the corpus's own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from pydantic import TypeAdapter

from core.errors import Fault, Invalid
from core.features.derived import Derived, Function
from core.features.matched import AnyColumn, MatchedSpec
from core.features.template import MAX_TEMPLATES, Anchor, Slot, Syntax, Take, Template, checked, checked_row

#: What the first column is called where nothing else is.
WORD = "word"


@dataclass(frozen=True, slots=True)
class Chain:
    """What a derived column does with the values of a column of the corpus: one function after the other."""

    of: int  # the column of the corpus
    steps: tuple[Derived, ...]
    #: Whether the names of places outside the sentence go through the functions too, as Wapiti's tests do.
    outside: bool = False

    @property
    def several(self) -> bool:
        """Whether a value of the corpus has any number of values here."""
        return self.steps[-1].several

    def parts(self) -> Callable[[str], Sequence[str]]:
        """Give what takes one value apart, where there are several."""
        last = self.steps[-1]
        if len(self.steps) == 1:
            return last.parts
        function = Chain(self.of, self.steps[:-1]).function()

        def apply(text: str) -> Sequence[str]:
            value = function(text)
            return () if value is None else last.parts(value)

        return apply

    @property
    def marks_first(self) -> bool:
        """Whether the column tells the first tokens of sentences, which no value can."""
        return self.steps[-1].kind == "first"

    def function(self) -> Function:
        """Give the function of one value. None means the value has no such thing, and makes no feature."""
        functions = [step.function() for step in self.steps]

        def apply(text: str) -> str | None:
            value: str | None = text
            for function in functions:
                if value is None:
                    return None
                value = function(value)
            return value

        return functions[0] if len(functions) == 1 else apply


class Place(NamedTuple):
    """A slot with its column by number."""

    slot: Slot
    column: int


@dataclass(frozen=True, slots=True)
class Several:
    """A template over a column of several values: `before` value `after`.

    `rows` are the places it looks at, in tokens away. Without a chain it looks at the bags of the corpus.
    """

    before: str = ""
    after: str = ""
    rows: tuple[int, ...] = (0,)
    chain: Chain | None = None

    def same_features(self, other: "Several") -> bool:
        """Whether equal values make the same features, wherever they are looked for."""
        return (self.before, self.after, self.chain) == (other.before, other.after, other.chain)

    def name(self, value: str) -> str:
        """The feature's name."""
        return f"{self.before}{value}{self.after}"


#: The attributes in bags are features by their own names.
BAG = Several()


@dataclass(frozen=True)
class Features:
    """Features settled for a corpus: derived columns stand behind the corpus's own, by number.

    A corpus without columns has bags of attributes, which are features themselves.
    """

    names: tuple[str, ...]  # base columns needed: those of the corpus up to the last one used
    templates: tuple[Template, ...]  # without those over columns of several values
    over_several: tuple[Template, ...]
    several: tuple[Several, ...]
    #: Derived columns as they were described: those used, and those that these come from.
    described: tuple[tuple[str, Derived], ...]
    derived: tuple[tuple[str, Chain], ...]
    #: Columns that look at sentences or lexicons, behind the derived ones.
    matched: tuple[tuple[str, MatchedSpec], ...]
    #: The places of each unigram template, in template order.
    slots: tuple[tuple[Place, ...], ...]
    #: Those of each template that is joined with the label pair.
    edge_slots: tuple[tuple[Place, ...], ...]
    cutoff: int
    seen_pairs: bool  # weights only for attributes and labels that occur together in the training data
    independent: bool  # every token is labelled on its own

    @property
    def columns(self) -> int:
        """Base columns needed."""
        return len(self.names)

    @property
    def gathers(self) -> bool:
        """Whether a column is made from the labels of the training text."""
        return any(spec.gathers for _, spec in self.matched)

    @property
    def unigrams(self) -> tuple[Template, ...]:
        return tuple(t for t in self.templates if t.kind == "U")

    @property
    def edges(self) -> bool:
        """Whether label bigrams are features: a `B` line that looks at nothing is there."""
        return any(t.kind == "B" and not t.slots for t in self.templates)

    @property
    def rich(self) -> tuple[Template, ...]:
        """The templates that are joined with the label pair."""
        return _rich(self.templates)

    def record(self) -> dict[str, Any]:
        """Describe the features in plain values, for `restored`."""
        return {
            "names": list(self.names),
            "templates": [
                [
                    t.kind,
                    list(t.literals),
                    [[s.row, s.column, s.anchor, s.take, s.regex, s.fold] for s in t.slots],
                    t.syntax,
                ]
                for t in (*self.templates, *self.over_several)
            ],
            "derived": [
                [name, each.model_dump(mode="json", exclude_none=True)]
                for name, each in (*self.described, *self.matched)
            ],
            "cutoff": self.cutoff,
            "structure": "independent" if self.independent else "chain",
        }


def _rich(templates: tuple[Template, ...]) -> tuple[Template, ...]:
    return tuple(t for t in templates if t.kind == "B" and t.slots)


def restored(record: dict[str, Any]) -> Features:
    """Settle recorded features again, which checks all that kernels rely on; ValueError says what is wrong."""
    if len(record["templates"]) > MAX_TEMPLATES:
        raise ValueError(f"at most {MAX_TEMPLATES} templates are possible")
    templates = tuple(_restored_template(*each) for each in record["templates"])
    derived = {str(name): _COLUMN.validate_python(each) for name, each in record["derived"]}
    names, independent = [str(name) for name in record["names"]], record["structure"] == "independent"
    return settle(templates, derived, names, int(record["cutoff"]), seen_pairs=False, independent=independent)


def _restored_template(kind: Any, literals: Any, slots: Any, syntax: Any) -> Template:
    if kind not in ("U", "B") or syntax not in get_args(Syntax) or len(literals) != len(slots) + 1:
        raise ValueError("a template is neither of single labels nor of pairs, or has too few pieces")
    made = tuple(_restored_slot(*slot) for slot in slots)
    return checked(Template(kind, tuple(map(str, literals)), made, syntax))


def _restored_slot(row: Any, column: Any, anchor: Any, take: Any, regex: Any, fold: Any) -> Slot:
    """A slot whose every place lies within what kernels have room for."""
    sound = (
        isinstance(row, int)
        and (isinstance(column, str) or (isinstance(column, int) and column >= 0))
        and anchor in get_args(Anchor)
        and (anchor != "end" or row < 0)
        and take in get_args(Take)
        and (regex is None or isinstance(regex, str))
    )
    if not sound:
        raise ValueError("a template looks at a place that there is not")
    return Slot(checked_row(row), column, anchor, take, regex, bool(fold))


_COLUMN: TypeAdapter[Derived | MatchedSpec] = TypeAdapter(AnyColumn)


def only(features: Features, kept: Collection[Template]) -> Features:
    """The features with only some of their templates, and with the columns that these need."""
    return settle(
        tuple(template for template in (*features.templates, *features.over_several) if template in kept),
        dict((*features.described, *features.matched)),
        features.names,
        features.cutoff,
        seen_pairs=features.seen_pairs,
        independent=features.independent,
    )


def settle(
    templates: tuple[Template, ...],
    derived: Mapping[str, Derived | MatchedSpec],
    columns: Sequence[str],
    cutoff: int,
    *,
    seen_pairs: bool,
    independent: bool = False,
) -> Features:
    """Find every column that the templates name, or raise Invalid with what is missing."""
    plain = {name: each for name, each in derived.items() if isinstance(each, Derived)}
    others = {name: each for name, each in derived.items() if not isinstance(each, Derived)}
    found = _Columns(plain, columns, others)
    faults = [
        *(fault for template in templates for fault in found.faults_of(template)),
        *(fault for name in plain for fault in found.faults_of_derived(name)),
        *(fault for name, each in others.items() for fault in found.faults_of_source(name, each.of)),
    ]
    if faults:
        raise Invalid(
            "The features name columns that the corpus does not have", faults[:100], code="missing_column"
        )
    if independent:
        templates = tuple(template for template in templates if template.kind == "U")
    over_several = tuple(filter(found.is_several, templates))
    templates = tuple(template for template in templates if not found.is_several(template))
    unigrams = [template for template in templates if template.kind == "U"]
    several = found.several(over_several)
    chains: dict[str, Chain] = {}
    base = {each.chain.of for each in several if each.chain is not None}
    for template in templates:
        for slot in template.slots:
            if slot.column in others:
                base.add(others[str(slot.column)].of)
                continue
            chain = found.chain(slot, outside=template.syntax == "wapiti")
            base.add(chain.of)
            if chain.steps:
                chains.setdefault(slot.source, chain)
    # In the order described, those made for a slot behind: numbers depend on the spec, not on the templates' order.
    order = {name: i for i, name in enumerate(derived)}
    names = sorted(chains, key=lambda name: order.get(name, len(order)))
    width = max(base, default=0) + 1
    used = {slot.column for template in templates for slot in template.slots}
    matched = [name for name in others if name in used]
    numbers = {name: width + i for i, name in enumerate([*names, *matched])}

    def place(slot: Slot) -> Place:
        if slot.column in others:
            return Place(slot, numbers[str(slot.column)])
        chain = found.chain(slot, outside=False)
        return Place(slot, numbers[slot.source] if chain.steps else chain.of)

    return Features(
        names=tuple(columns[:width]),
        templates=templates,
        over_several=over_several,
        several=several if columns else (BAG,),
        described=tuple((name, plain[name]) for name in found.described((*templates, *over_several))),
        derived=tuple((name, chains[name]) for name in names),
        matched=tuple((name, others[name]) for name in matched),
        slots=tuple(tuple(map(place, t.slots)) for t in unigrams),
        edge_slots=tuple(tuple(map(place, t.slots)) for t in _rich(templates)),
        cutoff=cutoff,
        seen_pairs=seen_pairs,
        independent=independent,
    )


@dataclass(frozen=True)
class _Columns:
    """The columns there are, by name and number."""

    derived: Mapping[str, Derived]
    corpus: Sequence[str]
    matched: Mapping[str, MatchedSpec]

    def number(self, column: int | str) -> int | None:
        """The number of a column of the corpus, or None."""
        if isinstance(column, int):
            return column if column < len(self.corpus) else None
        if column in self.corpus:
            return list(self.corpus).index(column)
        return 0 if column == WORD and self.corpus else None

    def steps(self, column: int | str) -> list[str]:
        """The derived columns from `column` back to the corpus; the last name is repeated when they go in circles."""
        names: list[str] = []
        while isinstance(column, str) and column in self.derived:
            if column in names:
                return [*names, column]
            names.append(column)
            column = self.derived[column].of
        return names

    def chain(self, slot: Slot, *, outside: bool) -> Chain:
        """What a slot does with a column of the corpus."""
        names = self.steps(slot.column)
        number = self.number(self.derived[names[-1]].of if names else slot.column)
        assert number is not None
        steps = [self.derived[name] for name in reversed(names)]
        if slot.take != "value":
            steps.append(Derived(kind="regex", pattern=slot.regex, take=slot.take, dialect="wapiti"))
        if slot.fold:
            steps.append(Derived(kind="lower"))
        return Chain(number, tuple(steps), outside and slot.take != "value")

    def described(self, templates: Sequence[Template]) -> list[str]:
        """The derived columns that templates need, in the order in which they are described."""
        used = {name for t in templates for slot in t.slots for name in self.steps(slot.column)}
        return [name for name in self.derived if name in used]

    def is_several(self, template: Template) -> bool:
        """Whether a template looks at a column of several values."""
        return any(self._several(slot.column) for slot in template.slots)

    def _several(self, column: int | str) -> bool:
        return isinstance(column, str) and column in self.derived and self.derived[column].several

    def several(self, templates: Sequence[Template]) -> tuple[Several, ...]:
        """Settle templates over columns of several values; those that read alike are one."""
        made: dict[tuple[str, ...], Several] = {}
        for template in templates:
            (slot,), (before, after) = template.slots, template.literals
            key = (before, after, slot.source)
            rows = (*(made[key].rows if key in made else ()), slot.row)
            chain = self.chain(slot, outside=False)
            made[key] = Several(before, after, tuple(dict.fromkeys(rows)), chain)
        return tuple(made.values())

    def faults_of(self, template: Template) -> list[Fault]:
        """What a template names that is not there."""
        faults = []
        alone = len(template.slots) == 1 and template.kind == "U"
        for slot in template.slots:
            if self._several(slot.column) and not (alone and slot.plain and slot.anchor == "token"):
                faults.append(f"{slot.column!r} has several values a token: it stands alone in a U template")
            if isinstance(slot.column, int):
                if self.number(slot.column) is None:
                    faults.append(f"no column {slot.column}; {self._have}")
            elif slot.column in self.matched:
                if slot.take != "value" or slot.fold:
                    faults.append(f"the values of {slot.column!r} are taken as they are")
            elif slot.column not in self.derived and self.number(slot.column) is None:
                faults.append(f"no derived column {slot.column!r}, and none of the corpus; {self._have}")
        return [Fault(f"{template}: {reason}", pointer="/features/templates") for reason in faults]

    def faults_of_derived(self, name: str) -> list[Fault]:
        """What is wrong with where a derived column comes from."""
        of = self.derived[name].of
        names = self.steps(name)
        if len(set(names)) < len(names):
            reason = f"columns derive from each other: {', '.join(names)}"
        elif isinstance(of, str) and of in self.derived:
            kind = self.derived[of].kind
            if kind not in ("first", "substrings"):
                return []
            tells = "places and no values" if kind == "first" else "several values"
            reason = f"nothing derives from {of!r}, which tells {tells}"
        else:
            return self.faults_of_source(name, of)
        return [Fault(reason, pointer=f"/features/derived/{name}/of")]

    def faults_of_source(self, name: str, of: int | str) -> list[Fault]:
        """What is wrong with the column of the corpus that a column comes from."""
        if self.number(of) is not None:
            return []
        reason = f"no column {of}; {self._have}" if isinstance(of, int) else f"no column {of!r}; {self._have}"
        return [Fault(reason, pointer=f"/features/derived/{name}/of")]

    @property
    def _have(self) -> str:
        count = len(self.corpus)
        named = [name for i, name in enumerate(self.corpus) if name != str(i)]
        called = f" and called {', '.join(named)}" if named else ""
        return f"the corpus has {count} attribute column{'s' * (count != 1)}, numbered from 0{called}"
