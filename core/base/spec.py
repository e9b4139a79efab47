"""Base class and validation of specs: strict, immutable, without unknown fields and NaN."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tagsmith.core.base.errors import Fault, Invalid

T = TypeVar("T")


class Spec(BaseModel):
    """A spec as posted. Unknown fields are refused, so a misspelt field is never silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def pointer(location: tuple[int | str, ...]) -> str:
    """Return the JSON pointer (RFC 6901) of a validation error's location."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location)


def faults_of(error: ValidationError, value: Any) -> list[Fault]:
    """List the faults of `value` with JSON pointers, without echoing the input."""
    faults = []
    for item in error.errors(include_url=False, include_input=False):
        path = _path(item["loc"], value, missing=item["type"] == "missing")
        if item["type"].startswith("union_tag"):
            # The fault is in the discriminator field of the union.
            path = (*path, str(item["ctx"]["discriminator"]).strip("'"))
        faults.append(Fault(reason=item["msg"], pointer=pointer(path), type=item["type"]))
    return faults


def _path(location: tuple[int | str, ...], value: Any, *, missing: bool) -> tuple[int | str, ...]:
    """Remove parts of a location that are not in the input: pydantic also includes the chosen union member."""
    path: list[int | str] = []
    for place, part in enumerate(location):
        inside = (
            part in value
            if isinstance(value, dict)
            else isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if inside:
            value = value[part]
        elif not (missing and place == len(location) - 1):
            continue
        path.append(part)
    return tuple(path)


def validated(adapter: TypeAdapter[T], value: Any, what: str) -> T:
    """Validate `value`, or raise Invalid with a JSON pointer to each fault."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise Invalid(f"{what} is not valid.", faults_of(error, value), code="invalid_spec") from None
