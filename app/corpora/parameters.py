"""The options of formats as parameters of a query, for the API's description."""

from collections.abc import Mapping
from typing import Any

from core.corpus import formats


def _parameters() -> list[dict[str, Any]]:
    """One entry an option, saying which formats have it."""
    found: dict[str, dict[str, Any]] = {}
    for name, model in formats.option_models().items():
        for option, schema in model.model_json_schema()["properties"].items():
            entry = found.setdefault(option, {"schema": _flat(schema), "formats": [], "said": schema})
            entry["formats"].append(name)
    return [
        {
            "name": option,
            "in": "query",
            "required": False,
            "schema": entry["schema"],
            "description": f"Of {', '.join(entry['formats'])}: {entry['said'].get('description', '')}",
        }
        for option, entry in found.items()
    ]


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A list goes into a query as one string, its items apart by commas."""
    kept = {key: value for key, value in schema.items() if key not in {"title", "description"}}
    if kept.get("type") == "array":
        return {"type": "string", "default": ",".join(kept.get("default", ()))}
    return kept


#: What a route adds to its description.
OPTIONS: Mapping[str, Any] = {"parameters": _parameters()}
