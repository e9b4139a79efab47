"""What a user says about features: templates or a preset, derived columns, cutoff."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from core.errors import Fault, Invalid
from core.features import short
from core.features.derived import ColumnName, Derived
from core.features.matched import AnyColumn, MatchedSpec
from core.features.presets import PRESETS, Preset
from core.features.settled import Features, settle
from core.features.template import MAX_TEMPLATES, Template, parse_crfpp
from core.features.wapiti import parse_wapiti
from core.specs_base import Spec

#: As much text as a template file may have.
MAX_TEXT = 262_144

#: The entries of the short form are checked by hand, each with its own place.
_Templates = Annotated[
    str | list[Any],
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_TEXT}, short.SCHEMA]}),
]


class InformationGain(Spec):
    """Keep only the templates that tell most about the labels in the training corpus, so many of them."""

    kind: Literal["information-gain"]
    templates: Annotated[int, Field(ge=1, le=MAX_TEMPLATES)]


class FeatureSpec(Spec):
    """The features of a model. Give `templates` or a `preset`; neither means `generic`.

    Tokens that have named attributes instead of columns have those as features, and `templates` need not be given.
    `structure: "independent"` labels every token on its own (maximum entropy): templates of label pairs do not count.
    Templates are a text in the `syntax` of CRF++ or Wapiti, or a list of joins: `[["word[-1]", "word[0]"]]`.
    """

    syntax: Literal["crf++", "wapiti"] = "crf++"
    templates: _Templates | None = None
    preset: Preset | None = None
    derived: Annotated[dict[ColumnName, AnyColumn], Field(max_length=256)] = Field(default_factory=dict)
    cutoff: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    pairs: Literal["all", "seen"] = "all"
    structure: Literal["chain", "independent"] = "chain"
    select: InformationGain | None = None

    @field_validator("templates")
    @classmethod
    def _templates_parse(cls, given: str | list[Any] | None, info: ValidationInfo) -> str | list[Any] | None:
        if isinstance(given, str) and len(given) > MAX_TEXT:
            raise ValueError(f"templates have at most {MAX_TEXT:,} characters")
        if isinstance(given, list) and len(given) > MAX_TEMPLATES:
            raise ValueError(f"at most {MAX_TEMPLATES} templates are possible")
        if given is not None:
            try:
                _parsed(given, info.data.get("syntax", "crf++"))
            except Invalid as error:
                # A line of the templates is no line of the body: say in which string it stands.
                faults = [
                    replace(fault, pointer=f"/features/templates{fault.pointer or ''}")
                    for fault in error.faults
                ]
                raise Invalid(error.message, faults, code=error.code) from None
        return given

    @model_validator(mode="after")
    def _one_source(self) -> "FeatureSpec":
        if self.templates is not None and self.preset is not None:
            raise ValueError("give templates or a preset, not both")
        if self.syntax != "crf++" and not isinstance(self.templates, str):
            raise ValueError(f"syntax {self.syntax!r} is said of templates given as text")
        return self

    @property
    def lexicons(self) -> dict[str, MatchedSpec]:
        """Columns that need a lexicon, by name."""
        return {
            name: column
            for name, column in self.derived.items()
            if not isinstance(column, Derived) and column.lexicon_id is not None
        }

    def resolve(self, columns: int | Sequence[str]) -> Features:
        """Settle templates and columns for a corpus, by the names or the number of its columns, or raise Invalid."""
        names = [str(i) for i in range(columns)] if isinstance(columns, int) else list(columns)
        derived = dict(self.derived)
        if self.templates is not None:
            templates = _parsed(self.templates, self.syntax)
        elif not names:
            templates = self._of_bags()
        else:
            text, preset_derived = PRESETS[self.preset or "generic"](len(names))
            templates, derived = parse_crfpp(text), {**preset_derived, **derived}
        return settle(
            templates,
            derived,
            names,
            self.cutoff,
            seen_pairs=self.pairs == "seen",
            independent=self.structure == "independent",
        )

    def _of_bags(self) -> tuple[Template, ...]:
        """What is left to say where the features are the attributes of tokens: that labels come in chains."""
        if self.preset is not None:
            reason = "presets look at columns; the tokens of the corpus have named attributes"
            fault = Fault(reason, pointer="/features/preset")
            raise Invalid(
                "The features name columns that the corpus does not have", [fault], code="missing_column"
            )
        return parse_crfpp("B")


def _parsed(templates: str | list[Any], syntax: str) -> tuple[Template, ...]:
    if isinstance(templates, list):
        return short.parse_short(templates)
    return parse_wapiti(templates) if syntax == "wapiti" else parse_crfpp(templates)
