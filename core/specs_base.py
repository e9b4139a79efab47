"""The base of every spec a user writes: strict, immutable, no unknown fields, no NaN."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from core.errors import Fault, Invalid

T = TypeVar("T")


class Spec(BaseModel):
    """A spec as posted: what it does not name is refused, so a misspelt field is never silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def pointer(location: tuple[int | str, ...]) -> str:
    """Give a JSON pointer (RFC 6901) for a validation error's location."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location)


def faults_of(error: ValidationError, value: Any) -> list[Fault]:
    """List what is wrong with `value`, with JSON pointers and without echoing the input."""
    faults = []
    for item in error.errors(include_url=False, include_input=False):
        path = _path(item["loc"], value, missing=item["type"] == "missing")
        if item["type"].startswith("union_tag"):
            # The fault lies in the field that tells the members of the union apart.
            path = (*path, str(item["ctx"]["discriminator"]).strip("'"))
        faults.append(Fault(reason=item["msg"], pointer=pointer(path)))
    return faults


def _path(location: tuple[int | str, ...], value: Any, *, missing: bool) -> tuple[int | str, ...]:
    """Take out of a location what is not in the input: pydantic names the chosen member of a union there too."""
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
    """Validate `value`, or raise Invalid with a pointer to each fault."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise Invalid(f"{what} is not valid", faults_of(error, value), code="invalid_spec") from None
