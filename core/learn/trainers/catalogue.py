"""Descriptions of all trainers for people: what each is, its fields and their defaults."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.registry import SPECS

#: Keywords of JSON Schema that a description keeps under its own names.
_KEPT = {"minimum": "minimum", "exclusiveMinimum": "above", "maximum": "maximum", "exclusiveMaximum": "below"}


@dataclass(frozen=True, slots=True)
class TrainerField:
    """A field of a trainer spec."""

    name: str
    #: As JSON Schema calls it: number, integer, string, boolean, object; several are separated by "or".
    type: str
    default: Any
    choices: tuple[str, ...]
    #: Its bounds, such as `{"minimum": 0, "below": 1}`.
    bounds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TrainerDescription:
    """A trainer: its `kind`, one sentence, what its fields mean, and the fields."""

    kind: str
    summary: str
    description: str
    #: Trainers of one family share their kernels.
    family: str
    fields: tuple[TrainerField, ...]


@cache
def trainers() -> tuple[TrainerDescription, ...]:
    """Describe all trainers, in the order of the documentation."""
    return tuple(_described(spec) for spec in SPECS)


def _described(spec: type[TrainerSpec]) -> TrainerDescription:
    module = inspect.getmodule(spec)
    assert module is not None
    first = inspect.cleandoc(module.__doc__ or "").partition("\n")[0]
    summary = first.partition(": ")[2]
    schema = spec.model_json_schema()
    fields = tuple(
        _field(name, each, schema.get("$defs", {}))
        for name, each in schema["properties"].items()
        if name != "kind"
    )
    return TrainerDescription(
        kind=str(spec.model_fields["kind"].default),
        summary=summary[:1].upper() + summary[1:],
        description=inspect.cleandoc(spec.__doc__ or ""),
        family=spec.__module__.split(".")[-2],
        fields=fields,
    )


def _field(name: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> TrainerField:
    options = [_resolved(each, definitions) for each in schema.get("anyOf", schema.get("oneOf", [schema]))]
    types = dict.fromkeys(str(each.get("type", "object")) for each in options)
    choices = [
        str(value)
        for each in options
        for value in each.get("enum", [each["const"]] if "const" in each else [])
    ]
    bounds = {ours: each[theirs] for each in options for theirs, ours in _KEPT.items() if theirs in each}
    return TrainerField(name, " or ".join(types), schema.get("default"), tuple(choices), bounds)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = str(schema.get("$ref", ""))
    found: Mapping[str, Any] = definitions[reference.rpartition("/")[2]] if reference else schema
    return found
