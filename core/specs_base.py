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


def faults_of(error: ValidationError, prefix: str = "") -> list[Fault]:
    """List what is wrong, with JSON pointers and without echoing the input."""
    return [
        Fault(reason=item["msg"], pointer=prefix + pointer(item["loc"]))
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def validated(adapter: TypeAdapter[T], value: Any, what: str) -> T:
    """Validate `value`, or raise Invalid with a pointer to each fault."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise Invalid(f"{what} is not valid", faults_of(error), code="invalid_spec") from None
