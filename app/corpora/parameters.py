"""The options of formats as query parameters, for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from tagsmith.core.corpus.formats import registry as formats


def _parameters() -> list[dict[str, Any]]:
    """Return one entry per option. Each entry names the formats that have the option."""
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
    """Convert the schema of a list: in a query it is one string of items separated by commas."""
    kept = {key: value for key, value in schema.items() if key not in {"title", "description"}}
    if kept.get("type") == "array":
        return {"type": "string", "default": ",".join(kept.get("default", ()))}
    return kept


#: Routes add this to their OpenAPI description.
OPTIONS: Mapping[str, Any] = {"parameters": _parameters()}
