"""What a user says about features: templates or a preset, derived columns, cutoff."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from core.errors import Fault, Invalid
from core.features.derived import Derived
from core.features.matched import AnyColumn, MatchedSpec
from core.features.presets import PRESETS, Preset
from core.features.template import Slot, Template, parse_crfpp
from core.specs_base import Spec

ColumnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]


class FeatureSpec(Spec):
    """The features of a model. Give `templates` (CRF++ syntax) or a `preset`; neither means `generic`."""

    templates: Annotated[str, Field(max_length=262_144)] | None = None
    preset: Preset | None = None
    derived: Annotated[dict[ColumnName, AnyColumn], Field(max_length=256)] = Field(default_factory=dict)
    cutoff: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    pairs: Literal["all", "seen"] = "all"

    @field_validator("templates")
    @classmethod
    def _templates_parse(cls, text: str | None) -> str | None:
        if text is not None:
            try:
                parse_crfpp(text)
            except Invalid as error:
                # A line of the templates is no line of the body: say in which string it stands.
                faults = [replace(fault, pointer="/features/templates") for fault in error.faults]
                raise Invalid(error.message, faults, code=error.code) from None
        return text

    @property
    def lexicons(self) -> dict[str, MatchedSpec]:
        """Columns that need a lexicon, by name."""
        return {
            name: column
            for name, column in self.derived.items()
            if not isinstance(column, Derived) and column.lexicon_id is not None
        }

    @model_validator(mode="after")
    def _one_source(self) -> "FeatureSpec":
        if self.templates is not None and self.preset is not None:
            raise ValueError("give templates or a preset, not both")
        return self

    @cached_property
    def _preset(self) -> Preset:
        return self.preset or "generic"

    def resolve(self, columns: int) -> "Features":
        """Settle templates and columns for a corpus of so many attribute columns, or raise Invalid."""
        if self.templates is not None:
            templates, derived = parse_crfpp(self.templates), dict(self.derived)
        else:
            text, preset_derived = PRESETS[self._preset](columns)
            templates, derived = parse_crfpp(text), {**preset_derived, **self.derived}
        faults = _missing_columns(templates, derived, columns)
        if faults:
            raise Invalid(
                "The features name columns that the corpus does not have", faults, code="missing_column"
            )
        used = {slot.column for template in templates for slot in template.slots}
        # Those that look at the sentence come last.
        names = sorted((n for n in derived if n in used), key=lambda n: not isinstance(derived[n], Derived))
        needed = [column for column in used if isinstance(column, int)] + [derived[name].of for name in names]
        columns = max(needed, default=0) + 1
        positions = {name: columns + i for i, name in enumerate(names)}
        return Features(
            columns=columns,
            templates=templates,
            derived=tuple((name, each) for name in names if isinstance(each := derived[name], Derived)),
            matched=tuple((name, each) for name in names if not isinstance(each := derived[name], Derived)),
            slots=tuple(
                tuple(_settled(slot, positions) for slot in t.slots) for t in templates if t.kind == "U"
            ),
            cutoff=self.cutoff,
            seen_pairs=self.pairs == "seen",
        )


@dataclass(frozen=True)
class Features:
    """Features settled for a corpus: derived columns stand behind the corpus's own, by number."""

    columns: int  # base columns needed: those of the corpus up to the last one used
    templates: tuple[Template, ...]
    derived: tuple[tuple[str, Derived], ...]
    matched: tuple[tuple[str, MatchedSpec], ...]
    #: (row, column number) of each unigram template, in template order.
    slots: tuple[tuple[tuple[int, int], ...], ...]
    cutoff: int
    seen_pairs: bool  # weights only for attributes and labels that occur together in the training data

    @property
    def gathers(self) -> bool:
        """Whether a column is made from the labels of the training text."""
        return any(spec.gathers for _, spec in self.matched)

    @property
    def unigrams(self) -> tuple[Template, ...]:
        return tuple(t for t in self.templates if t.kind == "U")

    @property
    def edges(self) -> bool:
        """Whether label bigrams are features: a `B` line is there."""
        return any(t.kind == "B" for t in self.templates)


def _settled(slot: Slot, positions: dict[str, int]) -> tuple[int, int]:
    return slot.row, slot.column if isinstance(slot.column, int) else positions[slot.column]


def _missing_columns(
    templates: tuple[Template, ...], derived: dict[str, Derived | MatchedSpec], columns: int
) -> list[Fault]:
    have = f"the corpus has {columns} attribute column{'s' if columns != 1 else ''}, numbered from 0"
    faults = []
    for template in templates:
        if template.kind == "B" and template.slots:
            faults.append(
                Fault(
                    f"{template}: templates joined with the label pair are not trained yet; write B alone",
                    pointer="/features/templates",
                )
            )
        for slot in template.slots:
            if isinstance(slot.column, int) and slot.column >= columns:
                faults.append(
                    Fault(f"{template}: no column {slot.column}; {have}", pointer="/features/templates")
                )
            elif isinstance(slot.column, str) and slot.column not in derived:
                faults.append(
                    Fault(f"{template}: no derived column {slot.column!r}", pointer="/features/templates")
                )
    for name, column in derived.items():
        if column.of >= columns:
            faults.append(Fault(f"no column {column.of}; {have}", pointer=f"/features/derived/{name}/of"))
    return faults
