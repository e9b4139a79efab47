"""Base class and validation of specs: strict, immutable, without unknown fields and NaN."""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Tag, TypeAdapter, ValidationError, model_validator

from tagsmith.core.base import names
from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.base.suggest import did_you_mean, unknown

T = TypeVar("T")
Location = tuple[int | str, ...]

#: A quoted choice in pydantic's list of expected values.
_CHOICE = re.compile(r"'([^']*)'")


class Spec(BaseModel):
    """A spec as posted. Unknown fields are refused, so a misspelt field is never silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    #: What to do instead, for fields that users expect here and that do not exist.
    instead: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _replace_subnormals(cls, value: Any) -> Any:
        """Read subnormal numbers as the nearest normal one. Kernels would read them as zero, which is not positive."""
        if isinstance(value, dict) and any(map(_is_subnormal, value.values())):
            return {name: _normal(each) if _is_subnormal(each) else each for name, each in value.items()}
        return value


def _is_subnormal(value: object) -> bool:
    return type(value) is float and 0 < abs(value) < sys.float_info.min


def _normal(value: float) -> float:
    return math.copysign(sys.float_info.min, value)


def pointer(location: Sequence[object]) -> str:
    """Return the JSON pointer (RFC 6901) of a location."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in location)


#: The most faults that are listed. Each can take a comparison of names.
MAX_FAULTS = 100


def faults_of(error: ValidationError, value: Any, kind: Any = None) -> list[Fault]:
    """List the faults of `value` with JSON pointers. `kind` is the type that it was validated as."""
    faults: list[Fault] = []
    named: set[str | None] = set()  # places of misspelt names
    for item in error.errors(include_url=False)[:MAX_FAULTS]:
        path = _path(item["loc"], value, missing=item["type"] == "missing")
        if item["type"].startswith("union_tag"):
            # The fault is in the discriminator field of the union.
            path = (*path, _discriminator(item))
        fault = Fault(reason=reason_of(item, kind), pointer=pointer(path), type=item["type"])
        # Of a choice between names and objects, the fault of a misspelt name says it all.
        if fault.type == "model_type" and fault.pointer in named:
            continue
        if fault.type == "literal_error":
            named.add(fault.pointer)
        faults.append(fault)
    return faults


def reason_of(item: Mapping[str, Any], kind: Any = None) -> str:
    """Return the reason of one of pydantic's errors. For an unknown name, it lists the known ones."""
    reason = _REASONS.get(item["type"])
    return (reason and reason(item, kind)) or str(item["msg"])


def _unknown_field(item: Mapping[str, Any], kind: Any) -> str:
    *location, name = item["loc"]
    models = list(_models_at(kind, tuple(location)))
    known = [field.alias or name for model in models for name, field in model.model_fields.items()]
    hints = [model.instead[name] for model in models if issubclass(model, Spec) and name in model.instead]
    return " ".join([unknown("field", str(name), known), *hints[:1]])


def _unknown_kind(item: Mapping[str, Any], _: Any) -> str:
    context = item["ctx"]
    return unknown(_discriminator(item), str(context["tag"]), _CHOICE.findall(str(context["expected_tags"])))


def _no_kind(item: Mapping[str, Any], kind: Any) -> str:
    field = _discriminator(item)
    known = _choices(field, _models_at(kind, item["loc"]))
    return f"`{field}` is missing." + (f" Give one of: {', '.join(known)}." if known else "")


def _no_object(item: Mapping[str, Any], kind: Any) -> str:
    """Return the reason for a value that must be an object, with the object that was probably meant."""
    given, models = item.get("input"), list(_models_at(kind, item["loc"]))
    kinds = _choices("kind", models)
    if kinds:
        meant = given if given in kinds else did_you_mean(str(given), kinds) or kinds[0]
        return f'Must be an object, such as {{"kind": "{meant}"}}.'
    fields = dict.fromkeys(name for model in models for name in model.model_fields)
    return (
        f"Must be an object with some of the fields {', '.join(fields)}." if fields else "Must be an object."
    )


def _unknown_choice(item: Mapping[str, Any], _: Any) -> str | None:
    if not isinstance(item.get("input"), str):
        return None
    # Pydantic adds the chosen member of a union to the location.
    fields = [part for part in item["loc"] if isinstance(part, str) and not part.startswith("literal[")]
    return unknown(fields[-1] if fields else "value", item["input"], _CHOICE.findall(item["ctx"]["expected"]))


def _other_pattern(item: Mapping[str, Any], _: Any) -> str | None:
    message = names.MESSAGES.get(item["ctx"]["pattern"])
    return message and message(str(item.get("input", "")))


#: The reason of each type of error that pydantic words for programmers.
_REASONS: Mapping[str, Callable[[Mapping[str, Any], Any], str | None]] = {
    "extra_forbidden": _unknown_field,
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _no_kind,
    "model_type": _no_object,
    "model_attributes_type": _no_object,
    "literal_error": _unknown_choice,
    "string_pattern_mismatch": _other_pattern,
    "value_error": lambda item, _: str(item["ctx"]["error"]),  # our own sentence, without pydantic's prefix
}


def _discriminator(item: Mapping[str, Any]) -> str:
    return str(item["ctx"]["discriminator"]).strip("'")


def _choices(field: str, models: Iterable[type[BaseModel]]) -> list[str]:
    """List the values of a field that distinguishes the members of a union."""
    annotations = [model.model_fields[field].annotation for model in models if field in model.model_fields]
    return [str(value) for each in annotations if get_origin(each) is Literal for value in get_args(each)]


def _models_at(kind: Any, location: Location) -> Iterator[type[BaseModel]]:
    """Find the classes that validate the object at a location. Pydantic puts tags of unions into locations."""
    for each, tags in _members(kind, ()):
        if not location:
            if isinstance(each, type) and issubclass(each, BaseModel):
                yield each
            continue
        part, rest = location[0], location[1:]
        if part in tags:
            yield from _models_at(each, rest)
        elif isinstance(each, type) and issubclass(each, BaseModel):
            if (field := each.model_fields.get(str(part))) is not None:
                yield from _models_at(field.annotation, rest)
        elif get_origin(each) in (list, tuple, dict):
            yield from _models_at(get_args(each)[-1], rest)


def _members(kind: Any, tags: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield the types that a type may be, each with its tags."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *notes = get_args(kind)
        yield from _members(inner, (*tags, *(note.tag for note in notes if isinstance(note, Tag))))
    elif origin in (Union, UnionType):
        for member in get_args(kind):
            yield from _members(member, tags)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        literals = [
            field.annotation
            for field in kind.model_fields.values()
            if get_origin(field.annotation) is Literal
        ]
        yield kind, (*tags, kind.__name__, *(str(value) for each in literals for value in get_args(each)))
    else:
        yield kind, tags


def _path(location: Location, value: Any, *, missing: bool) -> Location:
    """Remove parts of a location that are not in the input: pydantic also includes the chosen union member."""
    path: list[int | str] = []
    for depth, part in enumerate(location):
        inside = (
            part in value
            if isinstance(value, dict)
            else isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if inside:
            value = value[part]
        elif not (missing and depth == len(location) - 1):
            continue
        path.append(part)
    return tuple(path)


def validated(adapter: TypeAdapter[T], value: Any, what: str) -> T:
    """Validate `value`, or raise Invalid with a JSON pointer to each fault."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        faults = faults_of(error, value, adapter._type)  # noqa: SLF001  # pydantic has no public name for it
        raise Invalid(f"{what} is not valid.", faults, code="invalid_spec") from None
