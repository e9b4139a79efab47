"""Routes of models, versions and aliases."""

from functools import partial
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from tagsmith import wire
from tagsmith.app.deps import CallerDep, DatabaseDep, RuntimeDep
from tagsmith.app.http import etags
from tagsmith.app.http.bodies import JsonRoute
from tagsmith.app.http.etags import ExpectedDep, IfNoneMatch
from tagsmith.app.http.params import (
    DEFAULT_LIMIT,
    SVG,
    AliasName,
    Cursor,
    Force,
    Limit,
    ModelName,
    VersionNumber,
)
from tagsmith.app.http.policy import BodyLimit, policy
from tagsmith.app.http.uploads import Declared
from tagsmith.app.models import compare, imports, service, upload
from tagsmith.app.models.service import Change
from tagsmith.app.models.signatures import signed, signed_page
from tagsmith.app.models.templates import TemplateReport
from tagsmith.core.model import importing, inspection
from tagsmith.core.model.inspection import FeatureWeight, Histogram, TransitionWeight
from tagsmith.core.registry.aliases import MoveRow, RollbackTarget
from tagsmith.core.registry.models import ModelRow
from tagsmith.core.registry.registry import AliasState
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.paging import Page

router = APIRouter(prefix="/models", tags=["models"], route_class=JsonRoute)

LabelFilter = Annotated[str | None, Query(max_length=1000, description="Only weights of this label.")]
TemplateFilter = Annotated[str | None, Query(max_length=1000, description="Only features of this template.")]
Bins = Annotated[int, Query(ge=1, le=1000)]
VersionParameter = Annotated[int, Query(ge=1, le=2**31 - 1, description="Number of a version.")]
Top = Annotated[int, Query(ge=0, le=1000, description="How many of the largest weight changes to list.")]
At = Annotated[
    AwareDatetime | None, Query(description="A time with its zone, such as `2026-01-31T08:00:00Z`.")
]

_FILE = {"type": "string", "format": "binary", "minLength": 1}
BINARY = {"application/octet-stream": {"schema": _FILE}}

ImportFormat = Annotated[
    str,
    Query(
        max_length=32,
        description=f"Which program wrote the file: {', '.join(get_args(importing.ModelFormat))}; `auto` detects it.",
        json_schema_extra={"enum": [imports.DETECTED, *get_args(importing.ModelFormat)]},
    ),
]
IMPORT_BODY = {
    "requestBody": {
        "required": True,
        "description": "A model file, plain or with Content-Encoding gzip or zstd.",
        "content": BINARY,
    }
}


@router.get("", response_model=wire.Listing[wire.ModelInfo])
@policy(Scope.READ, etag=True)
def list_models(database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[ModelRow]:
    """List models, newest first."""
    return service.list_page(database, limit, cursor)


@router.get("/{name}", response_model=wire.ModelInfo)
@policy(Scope.READ, etag=True)
def get_model(name: ModelName, database: DatabaseDep) -> ModelRow:
    """Return one model."""
    return service.get(database, name)


@router.get("/{name}/versions", response_model=wire.Listing[wire.ModelVersion])
@policy(Scope.READ, etag=True)
def list_versions(
    name: ModelName, database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[wire.ModelVersion]:
    """List the versions of a model, newest first."""
    return signed_page(database, service.versions(database, name, limit, cursor))


@router.post(
    "/{name}/versions", status_code=201, response_model=wire.ModelVersion, openapi_extra=dict(IMPORT_BODY)
)
@policy(Scope.PROMOTE, body=BodyLimit.UPLOAD, idempotent=True, audit=True)
async def import_version(
    name: ModelName,
    request: Request,
    runtime: RuntimeDep,
    caller: CallerDep,
    format: ImportFormat = upload.DETECTED,  # noqa: A002  # the contract's name for it
) -> Response:
    """Publish a model file of Tagsmith or of another program as the next version. An invalid file is not stored."""
    made = await imports.create(request.stream(), Declared.of(request, format, {}), name, runtime, caller)
    await runtime.serving.refresh()
    return made.response()


@router.get("/{name}/compare")
@policy(Scope.READ, etag=True)
async def compare_versions(
    name: ModelName, base: VersionParameter, head: VersionParameter, runtime: RuntimeDep, top: Top = 20
) -> wire.VersionComparison:
    """Compare two versions: metrics, spec, and weights by feature name."""
    return await compare.compare(runtime.database, runtime.serving, name, (base, head), top)


@router.get("/{name}/versions/{number}", response_model=wire.ModelVersion)
@policy(Scope.READ, etag=True)
def get_version(name: ModelName, number: VersionNumber, database: DatabaseDep) -> wire.ModelVersion:
    """Return one version. Its signature says what it takes, with an example of a request."""
    return signed(database, service.version(database, name, number))


@router.get(
    "/{name}/versions/{number}/artifact",
    response_class=StreamingResponse,
    responses={200: {"content": BINARY}, 304: {"description": "Unchanged"}},
)
@policy(Scope.READ, etag=True)
def get_artifact(
    name: ModelName, number: VersionNumber, database: DatabaseDep, if_none_match: IfNoneMatch = None
) -> StreamingResponse:
    """Return the model file."""
    version = service.version(database, name, number)
    etag = etags.etag(version.sha256)
    etags.refuse_unchanged(if_none_match, etag)
    headers = {
        "Content-Length": str(version.size_bytes),
        "Content-Disposition": f'attachment; filename="{name}-{number}.model"',
        "ETag": etag,
    }
    chunks = service.artifact(database, name, number)
    return StreamingResponse(chunks, media_type="application/octet-stream", headers=headers)


@router.get("/{name}/versions/{number}/templates", response_model=wire.VersionTemplates)
@policy(Scope.READ, etag=True)
async def get_templates(name: ModelName, number: VersionNumber, runtime: RuntimeDep) -> TemplateReport:
    """List the templates of a version with norm, features and bytes, and those that training dropped."""
    return await service.version_templates(runtime.database, runtime.serving, name, number)


@router.get(
    "/{name}/versions/{number}/templates.svg",
    response_class=Response,
    responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
)
@policy(Scope.READ, etag=True)
async def get_template_plot(name: ModelName, number: VersionNumber, runtime: RuntimeDep) -> Response:
    """Draw the norms of the templates of a version and, if the trainer selects templates, the selection path."""
    found = await service.version_templates(runtime.database, runtime.serving, name, number)
    return Response(found.svg(), media_type=SVG)


@router.get("/{name}/versions/{number}/features", response_model=wire.Listing[wire.WeightedFeature])
@policy(Scope.READ, etag=True)
async def list_features(
    name: ModelName,
    number: VersionNumber,
    runtime: RuntimeDep,
    label: LabelFilter = None,
    template: TemplateFilter = None,
    top: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[FeatureWeight]:
    """List feature weights, largest magnitude first, optionally only those of one label or template."""
    model = await service.opened(runtime.database, runtime.serving, name, number)
    return await run_in_threadpool(service.features, model, label, template, top, cursor)


@router.get("/{name}/versions/{number}/transitions", response_model=wire.Listing[wire.WeightedTransition])
@policy(Scope.READ, etag=True)
async def list_transitions(
    name: ModelName,
    number: VersionNumber,
    runtime: RuntimeDep,
    before: LabelFilter = None,
    label: LabelFilter = None,
    top: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[TransitionWeight]:
    """List transition weights, largest magnitude first, optionally only those from or to one label."""
    model = await service.opened(runtime.database, runtime.serving, name, number)
    return await run_in_threadpool(service.transitions, model, before, label, top, cursor)


@router.get("/{name}/versions/{number}/weights", response_model=wire.WeightHistogram)
@policy(Scope.READ, etag=True)
async def get_weights(
    name: ModelName, number: VersionNumber, runtime: RuntimeDep, bins: Bins = 20
) -> Histogram:
    """Return a histogram of the non-zero weights."""
    model = await service.opened(runtime.database, runtime.serving, name, number)
    return await run_in_threadpool(inspection.histogram, model, bins)


@router.delete("/{name}/versions/{number}", status_code=204)
@policy(Scope.PROMOTE, audit=True)
async def delete_version(
    name: ModelName, number: VersionNumber, runtime: RuntimeDep, caller: CallerDep
) -> None:
    """Delete a version. 409 while an alias points to it."""
    await run_in_threadpool(service.delete_version, runtime.database, runtime.registry, name, number, caller)
    await runtime.serving.refresh()


@router.delete("/{name}", status_code=204)
@policy(Scope.PROMOTE, audit=True)
async def delete_model(name: ModelName, runtime: RuntimeDep, caller: CallerDep, force: Force = False) -> None:
    """Delete a model with all versions. 409 while an active job uses it, or while it has aliases without `force`."""
    work = partial(service.delete, runtime.database, runtime.registry, name, caller, force=force)
    await run_in_threadpool(work)
    await runtime.serving.refresh()


@router.get("/{name}/aliases", response_model=wire.Listing[wire.Alias])
@policy(Scope.READ, etag=True)
def list_aliases(name: ModelName, database: DatabaseDep) -> Page[AliasState]:
    """List the aliases of a model."""
    return service.list_aliases(database, name)


@router.get(
    "/{name}/aliases/{alias}", response_model=wire.Alias, responses={304: {"description": "Unchanged"}}
)
@policy(Scope.READ, etag=True)
def get_alias(
    name: ModelName,
    alias: AliasName,
    database: DatabaseDep,
    response: Response,
    at: At = None,
    if_none_match: IfNoneMatch = None,
) -> AliasState:
    """Return the version that an alias points to, now or at a given time."""
    found = service.alias(database, name, alias, at)
    etag = etags.etag(found.seq)
    etags.refuse_unchanged(if_none_match, etag)
    response.headers["ETag"] = etag
    return found


@router.put("/{name}/aliases/{alias}", response_model=wire.Alias)
@policy(Scope.PROMOTE, audit=True)
async def move_alias(
    name: ModelName,
    alias: AliasName,
    body: wire.AliasMove,
    response: Response,
    runtime: RuntimeDep,
    caller: CallerDep,
    expected: ExpectedDep,
) -> AliasState:
    """Point an alias at a version. This process serves the version at once, all others within two seconds.

    409 if the policy of the model forbids the move, unless `force` is set.
    """
    change = Change(name, alias, caller, body.reason, expected)
    moved = await run_in_threadpool(
        service.move, runtime.database, runtime.registry, change, body.version, force=body.force
    )
    await runtime.serving.refresh()
    response.headers["ETag"] = etags.etag(moved.seq)
    return moved


@router.post("/{name}/aliases/{alias}/rollback", response_model=wire.Alias)
@policy(Scope.PROMOTE, idempotent=True, audit=True)
async def roll_back(
    name: ModelName,
    alias: AliasName,
    runtime: RuntimeDep,
    caller: CallerDep,
    expected: ExpectedDep,
    body: wire.AliasRollback | None = None,
) -> Response:
    """Point an alias back to an earlier version: one step back, several `steps`, or `to` a given point in its history.

    The policy of the model does not apply.
    """
    body = body or wire.AliasRollback.model_validate({})
    change = Change(name, alias, caller, body.reason, expected)
    target = RollbackTarget(body.steps or 1, body.to)
    moved = await run_in_threadpool(service.roll_back, runtime.database, runtime.registry, change, target)
    await runtime.serving.refresh()
    return moved.response()


@router.get("/{name}/aliases/{alias}/history", response_model=wire.Listing[wire.Move])
@policy(Scope.READ, etag=True)
def get_history(
    name: ModelName,
    alias: AliasName,
    database: DatabaseDep,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[MoveRow]:
    """List the moves of an alias, newest first: who, when, why, from which version, to which version."""
    return service.history(database, name, alias, limit, cursor)
