"""What can be said about a format: one class each, read from the query of an upload and kept with its corpus."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from core.corpus.segmentation import Coding
from core.corpus.segmented import Tags
from core.errors import Fault, Invalid
from core.specs_base import faults_of


class Options(BaseModel):
    """Base of all: what a format does not name is refused, so a misspelt option is never silently ignored.

    Not strict, because a query has nothing but strings.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ConllOptions(Options):
    """Column text needs no telling: columns are numbered, the label is the last."""


class CrfsuiteOptions(Options):
    """CRFsuite's data needs no telling either."""


class NdjsonOptions(Options):
    """JSON lines say themselves what they are."""


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


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


def parse(model: type[Options], values: Mapping[str, object], format_name: str) -> Options:
    """The options of one format, or Invalid with the name of each parameter at fault."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        known = ", ".join(model.model_fields) or "none"
        faults = [_fault(fault, format_name, known) for fault in faults_of(error, dict(values))]
        raise Invalid(
            f"The options are not those of format {format_name}.", faults, code="invalid_options"
        ) from None


def _fault(fault: Fault, format_name: str, known: str) -> Fault:
    name = (fault.pointer or "").split("/")[1:2]
    unknown = fault.reason.startswith("Extra inputs")
    reason = f"not an option of {format_name}; its options: {known}" if unknown else fault.reason
    return Fault(reason, parameter=name[0] if name else None)


def stored(options: Options) -> dict[str, Any]:
    """Plain values for the store, defaults included: a later release may have others."""
    return options.model_dump(mode="json")
