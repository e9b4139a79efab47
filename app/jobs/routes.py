"""Routes of jobs."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import PlainValidator

from app.body import JsonRoute
from app.deps import Caller, CallerDep, DatabaseDep, Runtime, RuntimeDep
from app.jobs import examples, schemas, service, stream
from app.keys import scopes
from app.params import DEFAULT_LIMIT, SVG, Cursor, JobId, Limit, Listing
from core import specs
from core.store.jobs import JobRow
from core.store.paging import Page
from core.store.states import State

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)

#: Seconds after which asking for the state of a new job is worthwhile.
RETRY_AFTER_S = "1"
CSV = "text/csv; charset=utf-8; header=present"

#: A job that succeeded this recently may have published a model that serving has not seen yet.
JUST_NOW = timedelta(seconds=10)

#: The spec's own parser reads it, because it says better than a union of models what is wrong and where.
Spec = Annotated[
    specs.JobSpec,
    PlainValidator(specs.parse_job, json_schema_input_type=specs.PostedJob),
    Body(openapi_examples=examples.JOBS),
]
StateFilter = Annotated[State | None, Query(description="Only jobs in this state.")]
ModelFilter = Annotated[str | None, Query(pattern=specs.NAME_PATTERN, description="Only jobs of this model.")]
#: Twice what the store can hold: anything beyond is no number of an event.
After = Annotated[int, Query(ge=0, le=2**32, description="Number of the last event already seen.")]
EventLimit = Annotated[int, Query(ge=1, le=1000)]
LastEventId = Annotated[str | None, Header(max_length=20, pattern=r"^[0-9]*$")]


@router.post("", status_code=202, response_model=schemas.Job)
def create_job(spec: Spec, response: Response, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Queue a job. What it names is checked now, so that it does not fail later for a typing error."""
    _allow(caller, spec)
    job = service.create(runtime.database, runtime.sender, spec, caller, settings=runtime.settings)
    return _created(response, job)


@router.get("", response_model=Listing[schemas.Job])
def list_jobs(
    database: DatabaseDep,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    state: StateFilter = None,
    model: ModelFilter = None,
) -> Page[JobRow]:
    """List jobs, newest first."""
    return service.page(database, limit, cursor, state, model)


@router.get("/{job_id}", response_model=schemas.Job)
async def get_job(job_id: JobId, runtime: RuntimeDep) -> JobRow:
    """Give a job as it stands."""
    job = await run_in_threadpool(service.get, runtime.database, job_id)
    if job.state is State.SUCCEEDED and job.finished_at and datetime.now(UTC) - job.finished_at < JUST_NOW:
        # Whoever learns here that it succeeded may tag with the result at once.
        await runtime.serving.refresh()
    return job


@router.get(
    "/{job_id}/events",
    response_model=Listing[schemas.Event],
    responses={
        200: {"content": {stream.MEDIA_TYPE: {"schema": {"type": "string"}}}},
        204: {"description": "As a stream: the job has ended and everything was seen; do not reconnect."},
    },
)
async def get_events(
    job_id: JobId,
    request: Request,
    runtime: RuntimeDep,
    after: After = 0,
    limit: EventLimit = 1000,
    last_event_id: LastEventId = None,
) -> Response | Page[schemas.Event]:
    """List events, or stream them when the request accepts `text/event-stream`."""
    seen = int(last_event_id) if last_event_id else after
    if stream.MEDIA_TYPE in request.headers.get("accept", ""):
        return await _stream(runtime, job_id, seen)
    page = await run_in_threadpool(service.events_after, runtime.database, job_id, seen, limit)
    return Page([schemas.Event(**event.as_dict()) for event in page.data], page.next_cursor)


@router.post("/{job_id}/cancel", status_code=202, response_model=schemas.Job)
def cancel_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Ask a job to stop. Asking twice is fine; one that has ended cannot be cancelled (409)."""
    return service.cancel(runtime.database, runtime.redis, job_id, caller)


@router.post("/{job_id}/pause", status_code=202, response_model=schemas.Job)
def pause_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Ask a job to store a checkpoint and let go of its worker. One that has ended, or ends, cannot (409)."""
    return service.pause(runtime.database, runtime.redis, job_id, caller)


@router.post("/{job_id}/resume", status_code=202, response_model=schemas.Job)
def resume_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Let a paused job go on from its checkpoint, to the very result it would have had. Others cannot (409)."""
    return service.resume(runtime.database, runtime.redis, runtime.sender, job_id, caller)


@router.post("/{job_id}/retry", status_code=202, response_model=schemas.Job)
def retry_job(job_id: JobId, response: Response, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Queue a new job with the spec of one that failed or was cancelled; of others there is none (409)."""
    spec = service.spec_to_retry(runtime.database, job_id)
    _allow(caller, spec)
    job = service.create(
        runtime.database,
        runtime.sender,
        spec,
        caller,
        settings=runtime.settings,
        retry_of=job_id,
    )
    return _created(response, job)


@router.get(
    "/{job_id}/table.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
def get_table(job_id: JobId, database: DatabaseDep) -> Response:
    """Give the table of a finished `compare`, `tune` or `evaluate` job as CSV."""
    return Response(service.table(database, job_id), media_type=CSV)


@router.get(
    "/{job_id}/plot.svg",
    response_class=Response,
    responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
)
def get_plot(job_id: JobId, database: DatabaseDep) -> Response:
    """Draw the learning curves of a finished `compare` or `train` job."""
    return Response(service.plot(database, job_id), media_type=SVG)


@router.get(
    "/{job_id}/output",
    response_class=StreamingResponse,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
def get_output(job_id: JobId, database: DatabaseDep) -> StreamingResponse:
    """Give the corpus that a finished `tag` job wrote."""
    job, result, chunks = service.output(database, job_id)
    headers = {
        "Content-Length": str(result["size_bytes"]),
        "Content-Disposition": f'attachment; filename="{job.id}.{result["format"]}"',
        "ETag": f'"{result["sha256"]}"',
        "Model-Version": f"{result['model']}:{result['version']}",
    }
    return StreamingResponse(chunks, media_type=result["media_type"], headers=headers)


def _allow(caller: Caller, spec: specs.JobSpec) -> None:
    if (scope := scopes.also_needed(spec)) is not None:
        caller.require(scope)


def _created(response: Response, job: JobRow) -> JobRow:
    response.headers["Location"] = service.location(job)
    response.headers["Retry-After"] = RETRY_AFTER_S
    return job


async def _stream(runtime: Runtime, job_id: str, seen: int) -> Response:
    job = await run_in_threadpool(service.get, runtime.database, job_id)
    if job.ended and seen >= job.last_seq:
        return Response(status_code=204)
    events = stream.EventStream(runtime.database, runtime.live, job_id, seen, on_end=runtime.serving.refresh)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(events.frames(), media_type=stream.MEDIA_TYPE, headers=headers)
