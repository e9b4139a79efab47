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
PAGE_DOCUMENT = "/docs/openapi.json"


def install(app: FastAPI) -> None:
    """Serve /openapi.json and /docs."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
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
    _add_security(made)
    _add_idempotency(made)
    return made


def _add_security(document: dict[str, Any]) -> None:
    """Say which scope each route needs. Without a key works too, where keys are not in force."""
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key, where keys are in force."}
    }
    for path, item in document["paths"].items():
        for method, operation in item.items():
            needed = scopes.needed(method.upper(), path)
            operation["security"] = [] if needed is None else [{"key": [needed.value]}]
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
