"""Routes of models, versions and aliases."""

from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from app.body import JsonRoute
from app.corpora.upload import Declared
from app.deps import CallerDep, DatabaseDep, RuntimeDep
from app.models import compare, conditions, imports, schemas, service
from app.models.conditions import ExpectedDep, IfNoneMatch
from app.models.service import Change
from app.models.templates import Templates
from app.params import DEFAULT_LIMIT, SVG, AliasName, Cursor, Limit, Listing, ModelName, VersionNumber
from core.model import importing, inspection
from core.model.inspection import FeatureWeight, Histogram, TransitionWeight
from core.store.aliases import AliasRow, Back, MoveRow
from core.store.models import ModelRow, VersionRow
from core.store.paging import Page

router = APIRouter(prefix="/models", tags=["models"], route_class=JsonRoute)

LabelFilter = Annotated[str | None, Query(max_length=1000, description="Only weights of this label.")]
TemplateFilter = Annotated[str | None, Query(max_length=1000, description="Only features of this template.")]
Bins = Annotated[int, Query(ge=1, le=1000)]
VersionParameter = Annotated[int, Query(ge=1, le=2**31 - 1, description="Number of a version.")]
Top = Annotated[int, Query(ge=0, le=1000, description="How many of the largest changes of weights to tell.")]
At = Annotated[
    AwareDatetime | None, Query(description="A time with its zone, such as `2026-01-31T08:00:00Z`.")
]

_FILE = {"type": "string", "format": "binary", "minLength": 1}
BINARY = {"application/octet-stream": {"schema": _FILE}}

ImportFormat = Annotated[
    str,
    Query(
        max_length=32,
        description=f"Which program wrote the file: {', '.join(get_args(importing.Format))}; `auto` looks at it.",
        json_schema_extra={"enum": [imports.DETECTED, *get_args(importing.Format)]},
    ),
]
IMPORT_BODY = {
    "requestBody": {
        "required": True,
        "description": "A model file, plain or with Content-Encoding gzip or zstd.",
        "content": BINARY,
    }
}


@router.get("", response_model=Listing[schemas.Model])
def list_models(database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Page[ModelRow]:
    """List models, newest first."""
    return service.page(database, limit, cursor)


@router.get("/{name}", response_model=schemas.Model)
def get_model(name: ModelName, database: DatabaseDep) -> ModelRow:
    """Give one model."""
    return service.get(database, name)


@router.get("/{name}/versions", response_model=Listing[schemas.Version])
def list_versions(
    name: ModelName, database: DatabaseDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Page[VersionRow]:
    """List the versions of a model, newest first."""
    return service.versions(database, name, limit, cursor)


@router.post(
    "/{name}/versions", status_code=201, response_model=schemas.Version, openapi_extra=dict(IMPORT_BODY)
)
async def import_version(
    name: ModelName,
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    caller: CallerDep,
    format: ImportFormat = imports.DETECTED,  # noqa: A002  # the contract's name for it
) -> VersionRow:
    """Publish a model file, ours or another program's, as the next version. One that is not sound stores nothing."""
    headers = request.headers
    declared = Declared(format, {}, headers.get("content-type", ""), headers.get("content-encoding"))
    made = await imports.create(
        request.stream(),
        declared,
        name,
        settings=runtime.settings,
        database=runtime.database,
        threads=runtime.upload_threads,
        caller=caller,
    )
    await run_in_threadpool(service.announce, runtime.redis)
    await runtime.serving.refresh()
    response.headers["Location"] = imports.location(made)
    return made


@router.get("/{name}/compare")
async def compare_versions(
    name: ModelName, base: VersionParameter, head: VersionParameter, runtime: RuntimeDep, top: Top = 20
) -> schemas.Comparison:
    """Say what differs between two versions: metrics, spec, and weights by the names of their features."""
    return await compare.compare(runtime.database, runtime.serving, name, (base, head), top)


@router.get("/{name}/versions/{number}", response_model=schemas.Version)
def get_version(name: ModelName, number: VersionNumber, database: DatabaseDep) -> VersionRow:
    """Give one version."""
    return service.version(database, name, number)


@router.get(
    "/{name}/versions/{number}/artifact",
    response_class=StreamingResponse,
    responses={200: {"content": BINARY}, 304: {"description": "Unchanged"}},
)
def get_artifact(
    name: ModelName, number: VersionNumber, database: DatabaseDep, if_none_match: IfNoneMatch = None
) -> StreamingResponse:
    """Give the model file."""
    version = service.version(database, name, number)
    etag = conditions.etag(version.sha256)
    conditions.refuse_unchanged(if_none_match, etag)
    headers = {
        "Content-Length": str(version.size_bytes),
        "Content-Disposition": f'attachment; filename="{name}-{number}.model"',
        "ETag": etag,
    }
    chunks = service.artifact(database, name, number)
    return StreamingResponse(chunks, media_type="application/octet-stream", headers=headers)


@router.get("/{name}/versions/{number}/templates", response_model=schemas.Templates)
async def get_templates(name: ModelName, number: VersionNumber, runtime: RuntimeDep) -> Templates:
    """Say what each template has in a version: norm, features, bytes; and which were dropped on the way."""
    return await service.version_templates(runtime.database, runtime.serving, name, number)


@router.get(
    "/{name}/versions/{number}/templates.svg",
    response_class=Response,
    responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
)
async def get_template_plot(name: ModelName, number: VersionNumber, runtime: RuntimeDep) -> Response:
    """Draw the templates of a version: their norms and, where they were selected, the path of the selection."""
    found = await service.version_templates(runtime.database, runtime.serving, name, number)
    return Response(found.svg(), media_type=SVG)


@router.get("/{name}/versions/{number}/features", response_model=Listing[FeatureWeight])
async def list_features(
    name: ModelName,
    number: VersionNumber,
    runtime: RuntimeDep,
    label: LabelFilter = None,
    template: TemplateFilter = None,
    top: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[FeatureWeight]:
    """List the weights of features, the strongest first; of one label or one template when given."""
    model = await service.opened(runtime.database, runtime.serving, name, number)
    return await run_in_threadpool(service.features, model, label, template, top, cursor)


@router.get("/{name}/versions/{number}/transitions", response_model=Listing[TransitionWeight])
async def list_transitions(
    name: ModelName,
    number: VersionNumber,
    runtime: RuntimeDep,
    before: LabelFilter = None,
    label: LabelFilter = None,
    top: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[TransitionWeight]:
    """List the weights of label pairs, the strongest first; those from or to one label when given."""
    model = await service.opened(runtime.database, runtime.serving, name, number)
    return await run_in_threadpool(service.transitions, model, before, label, top, cursor)


@router.get("/{name}/versions/{number}/weights")
async def get_weights(
    name: ModelName, number: VersionNumber, runtime: RuntimeDep, bins: Bins = 20
) -> Histogram:
    """Say how the weights that are not zero are spread."""
    model = await service.opened(runtime.database, runtime.serving, name, number)
    return await run_in_threadpool(inspection.histogram, model, bins)


@router.delete("/{name}/versions/{number}", status_code=204)
async def delete_version(
    name: ModelName, number: VersionNumber, runtime: RuntimeDep, caller: CallerDep
) -> None:
    """Remove a version. One that an alias stands for stays (409)."""
    await run_in_threadpool(service.delete_version, runtime.database, runtime.redis, name, number, caller)
    await runtime.serving.refresh()


@router.get("/{name}/aliases", response_model=Listing[schemas.Alias])
def list_aliases(name: ModelName, database: DatabaseDep) -> Page[AliasRow]:
    """List the aliases of a model."""
    return service.list_aliases(database, name)


@router.get(
    "/{name}/aliases/{alias}", response_model=schemas.Alias, responses={304: {"description": "Unchanged"}}
)
def get_alias(
    name: ModelName,
    alias: AliasName,
    database: DatabaseDep,
    response: Response,
    at: At = None,
    if_none_match: IfNoneMatch = None,
) -> AliasRow:
    """Give what an alias stands for, or stood for at a time."""
    found = service.alias(database, name, alias, at)
    etag = conditions.etag(found.seq)
    conditions.refuse_unchanged(if_none_match, etag)
    response.headers["ETag"] = etag
    return found


@router.put("/{name}/aliases/{alias}", response_model=schemas.Alias)
async def move_alias(
    name: ModelName,
    alias: AliasName,
    body: schemas.AliasMove,
    response: Response,
    runtime: RuntimeDep,
    caller: CallerDep,
    expected: ExpectedDep,
) -> AliasRow:
    """Point an alias at a version. This process serves it from then on, all others within two seconds.

    A move that breaks the policy of the model is refused (409), unless it is forced.
    """
    change = Change(name, alias, caller, body.reason, expected)
    moved = await run_in_threadpool(
        service.move, runtime.database, runtime.redis, change, body.version, force=body.force
    )
    await runtime.serving.refresh()
    response.headers["ETag"] = conditions.etag(moved.seq)
    return moved


@router.post("/{name}/aliases/{alias}/rollback", response_model=schemas.Alias)
async def roll_back(
    name: ModelName,
    alias: AliasName,
    response: Response,
    runtime: RuntimeDep,
    caller: CallerDep,
    expected: ExpectedDep,
    body: schemas.AliasRollback | None = None,
) -> AliasRow:
    """Return an alias to what it stood for before; twice goes two back, as do two `steps`. Or `to` any point.

    The policy of the model has no say in it.
    """
    body = body or schemas.AliasRollback.model_validate({})
    change, back = Change(name, alias, caller, body.reason, expected), Back(body.steps or 1, body.to)
    moved = await run_in_threadpool(service.rollback, runtime.database, runtime.redis, change, back)
    await runtime.serving.refresh()
    response.headers["ETag"] = conditions.etag(moved.seq)
    return moved


@router.get("/{name}/aliases/{alias}/history", response_model=Listing[schemas.Move])
def get_history(
    name: ModelName,
    alias: AliasName,
    database: DatabaseDep,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Page[MoveRow]:
    """List the moves of an alias, newest first: who, when, why, from, to."""
    return service.history(database, name, alias, limit, cursor)
