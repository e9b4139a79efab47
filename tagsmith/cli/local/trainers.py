"""The trainers of this installation, described by their specs."""

import inspect
import sys
from typing import Any

from tagsmith.core.learn.trainers.base import TrainerSpec
from tagsmith.core.learn.trainers.registry import SPECS


def all_trainers() -> list[dict[str, Any]]:
    """Describe every trainer: kind, family, one sentence, fields with defaults and bounds."""
    return [_described(spec) for spec in SPECS]


def _described(spec: type[TrainerSpec]) -> dict[str, Any]:
    module = sys.modules[spec.__module__]
    about = inspect.cleandoc(module.__doc__ or "").split("\n")[0]
    schema = spec.model_json_schema()
    kind = str(spec.model_fields["kind"].default)
    return {
        "kind": kind,
        "family": spec.__module__.split(".")[-2],
        "summary": about.partition(": ")[2] or about,
        "description": " ".join(inspect.cleandoc(spec.__doc__ or "").split()),
        "fields": [
            _field(name, about_field, schema.get("$defs", {}))
            for name, about_field in schema["properties"].items()
            if name != "kind"
        ],
    }


def _field(name: str, about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    del definitions
    variants = about.get("anyOf") or [about]
    types = [str(each["type"]) for each in variants if "type" in each] or ["object"]
    choices = [choice for each in variants for choice in each.get("enum", ())]
    bounds = []
    for key, sign in (
        ("minimum", ">="),
        ("exclusiveMinimum", ">"),
        ("maximum", "<="),
        ("exclusiveMaximum", "<"),
    ):
        bounds += [f"{sign} {each[key]:g}" for each in variants if key in each]
    return {
        "name": name,
        "type": " or ".join(dict.fromkeys(types)),
        "default": about.get("default"),
        "range": ", ".join(map(str, choices)) if choices else ", ".join(bounds),
    }
