"""The reference of the HTTP API, generated from the OpenAPI document."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tagsmith.app.main import create_app
from tagsmith.core.service.settings import Settings

HEADING = "## Operations"
#: The schema of a list with pages, as the framework names it.
LISTING = re.compile(r"Listing_(\w+)_")
#: The page that explains the operations of a tag.
EXPLAINED = {
    "tagging": "tagging.md",
    "corpora": "formats.md",
    "lexicons": "lexicons.md",
    "jobs": "jobs.md",
    "models": "models.md",
    "policies": "policies.md",
    "features": "features.md",
    "trainers and presets": "trainers/README.md",
    "keys": "keys.md",
    "audit": "operations.md#audit",
    "health": "operations.md#health",
}


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    """Give every operation of the API by method and path, in the order of the document."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), database_url=f"sqlite:///{folder}/db")
        paths = create_app(settings).openapi()["paths"]
    return {
        (method.upper(), path): operation
        for path, item in paths.items()
        for method, operation in item.items()
    }


def http_page(page: str) -> str:
    """Give the page of the HTTP API with all operations up to date."""
    before, _ = page.split(HEADING, 1)
    return before + HEADING + "\n" + "".join(_sections(operations()))


def _sections(found: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    tags = dict.fromkeys(operation["tags"][0] for operation in found.values())
    for tag in tags:
        yield f"\n### {tag.capitalize()}\n\nSee [{EXPLAINED[tag]}]({EXPLAINED[tag]}).\n"
        for (method, path), operation in found.items():
            if operation["tags"][0] == tag:
                yield from _operation(method, path, operation)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"\n#### `{method} {path}`\n\n{' '.join(operation['description'].split())}\n\n"
    scope = operation.get("x-scope")
    facts = [f"Scope `{scope}`." if scope else "Needs no key."]
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        facts.append(f"Body: {_listed(_content(kind, value) for kind, value in body.items())}.")
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            content = _listed(_content(kind, value) for kind, value in response.get("content", {}).items())
            facts.append(f"Response {status}: {content}." if content else f"Response {status}.")
    yield " ".join(facts) + "\n"
    rows = [_row(parameter) for parameter in operation.get("parameters", ())]
    if rows:
        yield "\n| parameter | in | value | meaning |\n|---|---|---|---|\n"
        yield from (f"| {' | '.join(row)} |\n" for row in rows)


def _content(kind: str, value: dict[str, Any]) -> str:
    schema = value.get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    if kind != "application/json" or not name:
        return f"`{kind}`"
    entry = LISTING.fullmatch(name)
    return f"a list of `{entry[1]}`" if entry else f"`{name}`"


def _listed(values: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _row(parameter: dict[str, Any]) -> tuple[str, str, str, str]:
    schema = parameter["schema"]
    name = f"`{parameter['name']}`" + (" (required)" if parameter.get("required") else "")
    return name, parameter["in"], _value(schema), _in_cell(parameter.get("description", ""))


def _value(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        kind = ", ".join(f"`{each}`" for each in schema["enum"])
    elif "anyOf" in schema:
        kind = " or ".join(dict.fromkeys(each.get("type", "object") for each in schema["anyOf"]))
    else:
        kind = schema.get("format", schema.get("type", ""))
    default = schema.get("default")
    return _in_cell(kind if default in (None, "") else f"{kind}; default `{str(default).lower()}`")


def _in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
