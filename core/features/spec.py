"""The feature spec that users write: templates or a preset, derived columns, a cutoff."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.spec import Spec
from tagsmith.core.features.columns.derived import ColumnName
from tagsmith.core.features.columns.matched.kinds import AnyColumn
from tagsmith.core.features.columns.matched.lexicon_base import LexiconBase
from tagsmith.core.features.presets import PRESETS, Preset
from tagsmith.core.features.resolve import resolve_features
from tagsmith.core.features.resolved import ExistingWeights, Features, Structure
from tagsmith.core.features.templates import short
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.features.templates.template import MAX_TEMPLATES, Template
from tagsmith.core.features.templates.wapiti import parse_wapiti

#: Maximum length of a template text.
MAX_TEMPLATE_CHARS = 262_144

#: A list is validated by `parse_short`, not by pydantic, so that each fault points to its entry.
_Templates = Annotated[
    str | list[Any],
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_TEMPLATE_CHARS}, short.SCHEMA]}),
]


class InformationGain(Spec):
    """Keep the `templates` best templates, ranked by information gain about the training labels."""

    kind: Literal["information-gain"]
    templates: Annotated[int, Field(ge=1, le=MAX_TEMPLATES)]


class FeatureSpec(Spec):
    """The features of a model. Give `templates` or a `preset`. The default is the preset `generic`.

    `templates` is a string in CRF++ or Wapiti syntax (`syntax`), or a list of column combinations:
    `[["word[-1]", "word[0]"]]`. If tokens have named attributes instead of columns, the attributes are the features,
    and `templates` is optional.

    `derived` defines columns computed from others, such as suffixes. Features that occur less often than `cutoff` in
    the training corpus are dropped. `pairs: "seen"` gives a weight only to attributes and labels that occur together
    there. `structure: "independent"` labels every token on its own (maximum entropy) and ignores label-bigram (`B`)
    templates. `structure: "tree"` finds the head of every token: its templates are over arcs, such as
    `["head.word", "modifier.word", "direction"]`. `select` keeps only the best templates.
    """

    structure: Structure = "chain"
    syntax: Literal["crf++", "wapiti"] = "crf++"
    templates: _Templates | None = None
    preset: Preset | None = None
    derived: Annotated[dict[ColumnName, AnyColumn], Field(max_length=256)] = Field(default_factory=dict)
    cutoff: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    pairs: Literal["all", "seen"] = "all"
    transitions: Literal["all", "seen"] | None = None
    min_frequency: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    select: InformationGain | None = None

    @field_validator("templates")
    @classmethod
    def _check_templates(
        cls, templates: str | list[Any] | None, info: ValidationInfo
    ) -> str | list[Any] | None:
        if isinstance(templates, str) and len(templates) > MAX_TEMPLATE_CHARS:
            raise ValueError(f"The templates are too long. Use at most {MAX_TEMPLATE_CHARS:,} characters.")
        if isinstance(templates, list) and len(templates) > MAX_TEMPLATES:
            raise ValueError(f"There are too many templates. Use at most {MAX_TEMPLATES}.")
        if templates is not None:
            try:
                _parse_templates(
                    templates, info.data.get("syntax", "crf++"), info.data.get("structure", "chain")
                )
            except Invalid as error:
                # Line numbers are relative to the templates, so point to the field that contains them.
                faults = [
                    replace(fault, pointer=f"/features/templates{fault.pointer or ''}")
                    for fault in error.faults
                ]
                raise Invalid(error.message, faults, code=error.code) from None
        return templates

    @model_validator(mode="after")
    def _check_source(self) -> "FeatureSpec":
        if self.templates is not None and self.preset is not None:
            raise ValueError("Give templates or a preset, not both.")
        if self.syntax != "crf++" and not isinstance(self.templates, str):
            raise ValueError(f"Syntax {self.syntax!r} needs templates given as text.")
        if self.structure == "tree" and not isinstance(self.templates, list):
            raise ValueError('Trees need a list of templates, such as [["head.word", "modifier.word"]].')
        return self

    @property
    def lexicons(self) -> dict[str, LexiconBase]:
        """The columns that need a lexicon, by name."""
        return {name: column for name, column in self.derived.items() if isinstance(column, LexiconBase)}

    def resolve(self, columns: int | Sequence[str]) -> Features:
        """Resolve templates and columns for a corpus with these column names, or this number of columns."""
        names = [str(i) for i in range(columns)] if isinstance(columns, int) else list(columns)
        derived = dict(self.derived)
        if self.templates is not None:
            templates = _parse_templates(self.templates, self.syntax, self.structure)
        elif not names:
            templates = self._attribute_templates()
        else:
            text, preset_derived = PRESETS[self.preset or "generic"](len(names))
            templates, derived = parse_crfpp(text), {**preset_derived, **derived}
        return resolve_features(
            templates,
            derived,
            names,
            self.cutoff,
            weights=self.weights,
            structure=self.structure,
        )

    @property
    def weights(self) -> ExistingWeights:
        """Which weights exist. Label pairs follow `pairs` unless `transitions` is given."""
        seen_transitions = (self.transitions or self.pairs) == "seen"
        return ExistingWeights(self.pairs == "seen", seen_transitions, self.min_frequency)

    def _attribute_templates(self) -> tuple[Template, ...]:
        """The templates for a corpus whose attributes are the features: only the label bigram."""
        if self.preset is not None:
            reason = "Presets need columns, but the tokens have named attributes. Remove the preset."
            fault = Fault(reason, pointer="/features/preset")
            raise Invalid(
                "The features use columns that are missing or cannot be used this way.",
                [fault],
                code="missing_column",
            )
        return parse_crfpp("B")


def _parse_templates(templates: str | list[Any], syntax: str, structure: Structure) -> tuple[Template, ...]:
    if isinstance(templates, list):
        return short.parse_short(templates, arcs=structure == "tree")
    return parse_wapiti(templates) if syntax == "wapiti" else _crfpp(templates)


def _crfpp(text: str) -> tuple[Template, ...]:
    """Parse CRF++ templates. If they are Wapiti patterns, the error suggests that syntax."""
    try:
        return parse_crfpp(text)
    except Invalid as error:
        try:
            parse_wapiti(text)
        except Invalid:
            raise error from None
        faults = [Fault('These are Wapiti patterns. Set "syntax" to "wapiti".'), *error.faults]
        raise Invalid(error.message, faults, code=error.code) from None
