"""What can be said about a format: one class each, read from the query of an upload and kept with its corpus."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from core.corpus.brat import Conflicts
from core.corpus.conllu import FIELDS
from core.corpus.labels import LabelCoding
from core.corpus.segmentation import Coding
from core.corpus.segmented import Tags
from core.corpus.tokens import Tokens
from core.errors import Fault, Invalid


class LabelOptions(BaseModel):
    """What can be asked of labels, whatever the format: at an upload, and when a corpus is written."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    labels: LabelCoding | None = Field(
        default=None, description="Coding of chunks to put the labels into; as they are if not given."
    )
    repair: bool = Field(
        default=False,
        description="Whether labels that break their coding are put right, as the scorer reads them.",
    )


class Options(LabelOptions):
    """Base of all: what a format does not name is refused, so a misspelt option is never silently ignored.

    Not strict, because a query has nothing but strings.
    """

    labelled: bool = Field(
        default=True, description="Whether the text has labels; without them it can be tagged only."
    )


class ConllOptions(Options):
    """Column text needs no telling: columns are numbered, the label is the last."""


class CrfsuiteOptions(Options):
    """CRFsuite's data needs no telling either."""


class NdjsonOptions(Options):
    """JSON lines say themselves what they are."""


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _names(value: object) -> object:
    """A list of names; a query has it as one string, apart by commas."""
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


def _said(reason: str) -> PydanticCustomError:
    return PydanticCustomError("option", "{reason}", {"reason": reason})


def _field(name: str) -> str:
    if name not in FIELDS:
        raise _said(f"{name!r} is not a field; fields: {', '.join(FIELDS)}")
    return name


class ConlluOptions(Options):
    """CoNLL-U, its fields by name."""

    columns: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        default=("form",),
        description=f"Fields that become columns, in this order: any of {', '.join(FIELDS)}.",
    )
    label: str = Field(
        default="upos", validate_default=True, description="Field that holds the labels; none of the columns."
    )

    @field_validator("columns")
    @classmethod
    def _columns_are_fields(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        if columns in ((), ("",)):
            raise _said("at least one field is needed")
        for place, name in enumerate(columns):
            if _field(name) in columns[:place]:
                raise _said(f"{name!r} is named twice")
        return columns

    @field_validator("label")
    @classmethod
    def _label_is_another_field(cls, label: str, info: ValidationInfo) -> str:
        if _field(label) in info.data.get("columns", ()):
            raise _said(f"the label {label} is among the columns")
        return label


class SegmentedOptions(Options):
    """Segmented text."""

    coding: Annotated[Coding, BeforeValidator(_number)] = Field(
        default=4, description="How many labels code the place of a character in its word."
    )
    tags: Tags = Field(
        default="none",
        description="What a slash after a word means: `none` (it is a character), `strip` (leave out what follows) or "
        "`use` (what follows is part of the labels).",
    )


class BratOptions(Options):
    """Stand-off annotation of brat."""

    tokens: Tokens = Field(
        default="words",
        description="What a token is: `words` (a run of letters, digits and combining marks, or any other character by "
        "itself) or `blanks` (whatever stands between blanks).",
    )
    conflicts: Conflicts = Field(
        default="refuse",
        description="What happens to annotations that overlap, have gaps or cut a token: `refuse`, or `resolve` (the "
        "longest stays, gaps are filled, tokens are taken whole).",
    )
    types: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        default=(), description="Types of annotations to read; all if none is named."
    )


def parse(model: type[Options], values: Mapping[str, object], format_name: str) -> Options:
    """The options of one format, or Invalid with the name of each parameter at fault."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [
            _fault(item, model, format_name) for item in error.errors(include_url=False, include_input=False)
        ]
        raise Invalid(
            f"The options are not those of format {format_name}.", faults, code="invalid_options"
        ) from None


def _fault(item: ErrorDetails, model: type[Options], format_name: str) -> Fault:
    reason = item["msg"]
    if item["type"] == "extra_forbidden":
        reason = f"not an option of {format_name}; its options: {', '.join(model.model_fields)}"
    return Fault(reason, parameter=str(item["loc"][0]))


def stored(options: Options) -> dict[str, Any]:
    """Plain values for the store, defaults included: a later release may have others."""
    return options.model_dump(mode="json")
