"""The feature spec that users write: templates or a preset, derived columns, a cutoff."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from tagsmith.core.base.errors import Fault, FaultType, Invalid
from tagsmith.core.base.spec import Spec
from tagsmith.core.features.arc_presets import ARC_PRESETS
from tagsmith.core.features.columns.derived import ColumnName
from tagsmith.core.features.columns.matched.kinds import AnyColumn
from tagsmith.core.features.columns.matched.lexicon_base import LexiconBase
from tagsmith.core.features.presets import PRESETS, Preset
from tagsmith.core.features.resolve import resolve_features
from tagsmith.core.features.resolved import ExistingWeights, Features, Structure
from tagsmith.core.features.templates import short
from tagsmith.core.features.templates.crfpp import parse_crfpp
from tagsmith.core.features.templates.template import ARC_COLUMNS, MAX_TEMPLATES, Template
from tagsmith.core.features.templates.wapiti import parse_wapiti

#: Maximum length of a template text.
MAX_TEMPLATE_CHARS = 262_144

#: A list is validated by `parse_short`, not by pydantic, so that each fault points to its entry.
_Templates = Annotated[
    str | list[Any],
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_TEMPLATE_CHARS}, short.SCHEMA]}),
]


#: A list of templates over arcs.
_EXAMPLE = '[["head.form", "modifier.form"]]'


class InformationGain(Spec):
    """Keep the `templates` best templates, ranked by information gain about the training labels."""

    kind: Literal["information-gain"]
    templates: Annotated[int, Field(ge=1, le=MAX_TEMPLATES)]


class FeatureSpec(Spec):
    """The features of a model: `templates` or a `preset`. The default is the preset `generic`, for trees `parsing`.

    `templates` is a string in CRF++ or Wapiti syntax (`syntax`), or a list of column combinations:
    `[["word[-1]", "word[0]"]]`. If tokens have named attributes instead of columns, the attributes are the features,
    and `templates` is optional.

    `derived` defines columns computed from others, such as suffixes. Features that occur less often than `cutoff` in
    the training corpus are dropped. `pairs: "seen"` gives a weight only to attributes and labels that occur together
    there. `select` keeps only the best templates.

    `structure` follows the corpus: "tree" if it has dependency trees, otherwise "chain". "independent" labels every
    token on its own (maximum entropy) and ignores label-bigram (`B`) templates. "tree" finds the head of every token,
    with templates over arcs, such as `["head.form", "modifier.form", "direction"]`. It also finds the relation of a
    token to its head, unless `relations` is false. Arcs do not cross if `projective` is true; if it is null, they cross
    only if arcs of the training corpus do.
    """

    structure: Structure | None = None
    syntax: Literal["crf++", "wapiti"] = "crf++"
    templates: _Templates | None = None
    preset: Preset | None = None
    derived: Annotated[dict[ColumnName, AnyColumn], Field(max_length=256)] = Field(default_factory=dict)
    cutoff: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    pairs: Literal["all", "seen"] = "all"
    transitions: Literal["all", "seen"] | None = None
    min_frequency: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    select: InformationGain | None = None
    relations: bool = True
    projective: bool | None = None

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
                _parse_templates(templates, info.data.get("syntax", "crf++"), info.data.get("structure"))
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
        if self.structure is not None and self._over_arcs not in (None, self.structure == "tree"):
            raise self._wrong_for_structure()
        if self._decided is not None:
            self._check_fields_for(self._decided)
        return self

    @property
    def lexicons(self) -> dict[str, LexiconBase]:
        """The columns that need a lexicon, by name."""
        return {name: column for name, column in self.derived.items() if isinstance(column, LexiconBase)}

    def resolve(self, columns: int | Sequence[str], *, trees: bool | None = None) -> Features:
        """Resolve templates and columns for a corpus with these column names, or this number of columns.

        `trees` is whether the corpus has dependency trees, or None if only the spec is known.
        """
        names = [str(i) for i in range(columns)] if isinstance(columns, int) else list(columns)
        structure = self._structure_for(trees)
        derived = dict(self.derived)
        if self.templates is not None:
            templates = _parse_templates(self.templates, self.syntax, structure)
        elif not names:
            templates = self._attribute_templates(structure)
        else:
            templates, preset_derived = _of_preset(self.preset, structure, names)
            derived = {**preset_derived, **derived}
        return resolve_features(
            templates,
            derived,
            names,
            self.cutoff,
            weights=self.weights,
            structure=structure,
            relations=self.relations,
            projective=self.projective,
        )

    @property
    def weights(self) -> ExistingWeights:
        """Which weights exist. Label pairs follow `pairs` unless `transitions` is given."""
        seen_transitions = (self.transitions or self.pairs) == "seen"
        return ExistingWeights(self.pairs == "seen", seen_transitions, self.min_frequency)

    @property
    def _over_arcs(self) -> bool | None:
        """Whether the preset or the templates are over arcs; None if they can be either."""
        if self.preset is not None:
            return self.preset in ARC_PRESETS
        if not isinstance(self.templates, list):
            return None if self.templates is None else False
        if short.over_arcs(self.templates):
            return True
        return None if set(ARC_COLUMNS).issuperset(short.places_of(self.templates)) else False

    @property
    def _decided(self) -> Structure | None:
        """The structure if the spec decides it, or None if it follows the corpus."""
        if self.structure is not None or self._over_arcs is None:
            return self.structure
        return "tree" if self._over_arcs else "chain"

    def _structure_for(self, trees: bool | None) -> Structure:
        """Return the structure for a corpus with or without trees. Raise Invalid if the spec does not fit it."""
        structure = self._decided or ("tree" if trees else "chain")
        if trees is not None and trees != (structure == "tree"):
            raise self._wrong_for_corpus(trees)
        self._check_fields_for(structure)
        return structure

    def _wrong_for_structure(self) -> Invalid:
        """The error for templates or a preset that cannot have the given structure."""
        if self.preset is None:
            return _invalid("templates", f"Trees need a list of templates, such as {_EXAMPLE}.")
        if self.structure == "tree":
            known = " and ".join(map(repr, ARC_PRESETS))
            return _invalid("preset", f"The preset {self.preset!r} is for labels. Trees have {known}.")
        reason = f"The preset {self.preset!r} is for trees. Choose another one, or remove the structure."
        return _invalid("preset", reason)

    def _wrong_for_corpus(self, trees: bool) -> Invalid:
        """The error for features of labels with a corpus of trees, or the other way round."""
        if self.structure is not None:
            field, given = "structure", f"The structure {self.structure!r} is"
        elif self.preset is not None:
            field, given = "preset", f"The preset {self.preset!r} is"
        else:
            field, given = "templates", "These templates are"
        if trees:
            reason = "for labels, but the corpus has dependency trees. Use the preset 'parsing' or templates such as "
            reason += f"{_EXAMPLE}, without a structure, or upload the corpus again with a field as `label`."
        else:
            reason = (
                "for dependency trees, but the corpus has none. Upload it again with `label=tree`, or use "
            )
            reason += "features for labels."
        return _invalid(field, f"{given} {reason}")

    def _check_fields_for(self, structure: Structure) -> None:
        """Raise Invalid if a field is given that has no meaning for this structure."""
        if structure == "tree":
            if self.transitions is not None:
                raise _invalid("transitions", "Trees have no pairs of adjacent labels. Remove transitions.")
            return
        for field, given in (("relations", not self.relations), ("projective", self.projective is not None)):
            if given:
                raise _invalid(
                    field, f"Only trees have {field}, and these features are for labels. Remove it."
                )

    def _attribute_templates(self, structure: Structure) -> tuple[Template, ...]:
        """The templates for a corpus whose attributes are the features: only the label bigram."""
        if self.preset is not None or structure == "tree":
            reason = "Presets need columns, but the tokens have named attributes. Remove the preset."
            if structure == "tree":
                reason = "Trees need columns, but the tokens have none. Upload the corpus with `columns`."
            fault = Fault(reason, pointer="/features/preset")
            raise Invalid(
                "The features use columns that are missing or cannot be used this way.",
                [fault],
                code="missing_column",
            )
        return parse_crfpp("B")


def _invalid(field: str, reason: str) -> Invalid:
    fault = Fault(reason, pointer=f"/features/{field}", type=FaultType.INCONSISTENT)
    return Invalid("The features do not fit together.", [fault], code="invalid_spec")


def _of_preset(
    preset: Preset | None, structure: Structure, names: Sequence[str]
) -> tuple[tuple[Template, ...], Mapping[str, AnyColumn]]:
    """Return the templates of a preset, and the columns that they need."""
    if structure == "tree":
        entries, arc_derived = ARC_PRESETS[preset or "parsing"](names)
        return short.parse_short(entries, arcs=True), arc_derived
    text, derived = PRESETS[preset or "generic"](len(names))
    return parse_crfpp(text), derived


def _parse_templates(
    templates: str | list[Any], syntax: str, structure: Structure | None
) -> tuple[Template, ...]:
    """Parse templates. Without a structure, a list is over arcs if one of its places is at a head or modifier."""
    if isinstance(templates, list):
        arcs = short.over_arcs(templates) if structure is None else structure == "tree"
        return short.parse_short(templates, arcs=arcs)
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
