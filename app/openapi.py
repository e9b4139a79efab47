"""The OpenAPI document, and the page that shows it without any network but our own."""

import copy
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from swagger_ui_bundle import swagger_ui_path

from app.errors import Problem
from app.keys import scopes
from app.middleware import idempotency
from app.tagging.routes import MODELS as TAGGING_MODELS

ASSETS = "/docs/assets"
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
PAGE_DOCUMENT = "/docs/openapi.json"


def install(app: FastAPI, *, keys: bool) -> None:
    """Serve /openapi.json and /docs; with `keys`, the document says which routes need one."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
            _add_security(app.openapi_schema, keys=keys)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the framework's documented way
    app.mount(ASSETS, StaticFiles(directory=Path(str(swagger_ui_path))), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=PAGE_DOCUMENT,
            title=f"{app.title} API",
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
        )

    @app.get(PAGE_DOCUMENT, include_in_schema=False)
    async def page_document() -> JSONResponse:
        return JSONResponse(as_3_0(document()))


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for model in (Problem, *TAGGING_MODELS):
        schemas.update(_schemas(model))
    # Every error is a Problem, so the framework's own error shapes have no place here.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _add_idempotency(made)
    for item in made["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                _drop_null(parameter["schema"])
    _say_in_full(made)
    return made


def _drop_null(schema: dict[str, Any]) -> None:
    """A parameter is there or it is not: no text of it means null."""
    choices = schema.get("anyOf", [])
    rest = [choice for choice in choices if choice != {"type": "null"}]
    if len(rest) < len(choices):
        schema.pop("anyOf")
        schema |= rest[0] if len(rest) == 1 else {"anyOf": rest}


def _say_in_full(node: Any) -> None:
    """Say what validation demands beyond the schemas it was derived to."""
    if isinstance(node, list):
        for item in node:
            _say_in_full(item)
    elif isinstance(node, dict):
        for bound in BOUNDS & node.keys():
            # The framework writes them as floats, which do not hold the largest.
            if isinstance(node[bound], float) and node[bound].is_integer():
                node[bound] = int(node[bound])
        if "patternProperties" in node:
            # Names that fit no pattern are refused.
            node.setdefault("additionalProperties", False)
        if "discriminator" in node and "propertyName" in node["discriminator"]:
            # What tells members of a union apart is needed there also by members that have a default for it.
            name = node["discriminator"]["propertyName"]
            node["oneOf"] = [{**member, "required": [name]} for member in node["oneOf"]]
        for item in node.values():
            _say_in_full(item)


def _add_security(document: dict[str, Any], *, keys: bool) -> None:
    """Say which scope each route needs. On loopback it works without a key too, until one was made."""
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key, where keys are in force."}
    }
    for path, item in document["paths"].items():
        for method, operation in item.items():
            needed = scopes.needed(method.upper(), path)
            operation["security"] = [{"key": [needed.value]}] if needed is not None and keys else []
            if needed is not None:
                operation["x-scope"] = needed.value


def _add_idempotency(document: dict[str, Any]) -> None:
    """Say which routes answer a repeated request as they did the first time."""
    parameter = {
        "name": idempotency.HEADER,
        "in": "header",
        "required": False,
        "description": "The same request again within a day is not carried out again but answered as before.",
        "schema": {"type": "string", "pattern": idempotency.PATTERN, "examples": ["0b5cf1d4-6c1f-4a0e"]},
    }
    for path, item in document["paths"].items():
        if "post" in item and idempotency.CREATING.fullmatch(path):
            item["post"].setdefault("parameters", []).append(parameter)


def _schemas(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}


def as_3_0(document: dict[str, Any]) -> dict[str, Any]:
    """Say the document in OpenAPI 3.0, the newest that the page's assets can show."""
    made: dict[str, Any] = _as_3_0(copy.deepcopy(document))
    return {**made, "openapi": "3.0.3"}


def _as_3_0(node: Any) -> Any:
    if isinstance(node, list):
        return [_as_3_0(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _as_3_0(value) for key, value in node.items()}
    choices = node.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        node.pop("anyOf")
        # A reference may have no neighbours in 3.0, so even a single one stays inside a list.
        node |= rest[0] if len(rest) == 1 and "$ref" not in rest[0] else {"anyOf": rest}
        node["nullable"] = True
    if "const" in node:
        node["enum"] = [node.pop("const")]
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(exclusive), (int, float)) and not isinstance(node[exclusive], bool):
            node[plain], node[exclusive] = node[exclusive], True
    return node
