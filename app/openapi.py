"""The OpenAPI document, and the page that shows it. The page loads no files from other servers."""

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel

from tagsmith.app.http.middleware import idempotency
from tagsmith.app.http.policy import PolicedRoute, declared, policy
from tagsmith.app.tagging.routes import MODELS as TAGGING_MODELS
from tagsmith.core.jobs import kinds
from tagsmith.wire import ProblemDetails

DOCUMENT = "/openapi.json"

ASSETS = "/docs/assets"
#: The package that contains Swagger UI, and the directory of its files. Nothing else of the package is used.
ASSETS_PACKAGE = ("fastapi_swagger", "resources")
#: Request header of routes whose policy is idempotent.
IDEMPOTENCY_KEY: Mapping[str, Any] = {
    "name": idempotency.HEADER,
    "in": "header",
    "required": False,
    "description": "The same request within a day is not carried out again; it gets the same response.",
    "schema": {"type": "string", "pattern": idempotency.PATTERN, "examples": ["0b5cf1d4-6c1f-4a0e"]},
}
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})


def install(app: FastAPI, *, keys: bool) -> None:
    """Serve /openapi.json and /docs. With `keys`, the document states which routes need a key."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
            _add_policies(app.openapi_schema, declared(app.routes), keys=keys)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as the FastAPI documentation shows
    assets = policy(scope=None)(StaticFiles(packages=[ASSETS_PACKAGE]))
    app.mount(ASSETS, assets, name="docs-assets")

    @app.get(DOCUMENT, include_in_schema=False)
    @policy(scope=None)
    async def openapi() -> JSONResponse:
        return JSONResponse(document())

    @app.get("/docs", include_in_schema=False)
    @policy(scope=None)
    async def docs() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url=DOCUMENT,
            title=f"{app.title} API",
            swagger_js_url=f"{ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}/favicon-32x32.png",
            # No validator badge: it would come from another server.
            swagger_ui_parameters={"validatorUrl": None},
        )


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for model in (ProblemDetails, *TAGGING_MODELS):
        schemas.update(_schemas(model))
    _describe_results(schemas["Job"]["properties"]["result"])
    # Every error is a ProblemDetails, so the error schemas of the framework are not used.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for item in made["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                _drop_null(parameter["schema"])
    _say_in_full(made)
    return made


def _describe_results(schema: dict[str, Any]) -> None:
    """List the result fields of each job kind. The wire models do not define them."""
    fields = (f"{name}: {', '.join(kind.result.model_fields)}." for name, kind in kinds.known().items())
    schema["description"] = " ".join((schema["description"], *fields))


def _drop_null(schema: dict[str, Any]) -> None:
    """Remove null from the schema of a parameter. A parameter can be absent, but no value of it means null."""
    choices = schema.get("anyOf", [])
    rest = [choice for choice in choices if choice != {"type": "null"}]
    if len(rest) < len(choices):
        schema.pop("anyOf")
        schema |= rest[0] if len(rest) == 1 else {"anyOf": rest}


def _say_in_full(node: Any) -> None:
    """Add rules that validation enforces and that the generated schemas lack, to all nested schemas."""
    if isinstance(node, list):
        for item in node:
            _say_in_full(item)
    elif isinstance(node, dict):
        for bound in BOUNDS & node.keys():
            # The framework writes bounds as floats, which cannot represent the largest integers.
            if isinstance(node[bound], float) and node[bound].is_integer():
                node[bound] = int(node[bound])
        if "patternProperties" in node:
            # Validation rejects names that match no pattern.
            node.setdefault("additionalProperties", False)
        if "discriminator" in node and "propertyName" in node["discriminator"]:
            # A union requires its discriminator, even in members that have a default for it.
            name = node["discriminator"]["propertyName"]
            node["oneOf"] = [{**member, "required": [name]} for member in node["oneOf"]]
        for item in node.values():
            _say_in_full(item)


def _add_policies(document: dict[str, Any], routes: Iterable[PolicedRoute], *, keys: bool) -> None:
    """Add the scope that each route needs, and the `Idempotency-Key` header of idempotent routes.

    On loopback, routes also work without a key until the first key is created.
    """
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key, if keys are required."}
    }
    for route in routes:
        for method in route.methods or ():
            operation = document["paths"].get(route.path, {}).get(method.lower())
            if operation is None:
                continue
            scope = route.policy.scope
            operation["security"] = [{"key": [scope.value]}] if scope is not None and keys else []
            if scope is not None:
                operation["x-scope"] = scope.value
            if route.policy.idempotent:
                operation.setdefault("parameters", []).append(dict(IDEMPOTENCY_KEY))


def _schemas(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}
