"""Routes of jobs."""

from typing import Annotated

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.models import Example
from fastapi.responses import StreamingResponse
from fastapi.sse import EventSourceResponse
from pydantic import PlainValidator

from tagsmith import wire
from tagsmith.app.deps import CallerDep, DatabaseDep, Runtime, RuntimeDep
from tagsmith.app.http.bodies import JsonRoute
from tagsmith.app.http.params import DEFAULT_LIMIT, SVG, Cursor, JobId, Limit
from tagsmith.app.http.policy import policy
from tagsmith.app.jobs import service, stream
from tagsmith.core.base.names import NAME_PATTERN
from tagsmith.core.jobs import kinds
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.jobs.submit import CheckedJob
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.paging import Page
from tagsmith.core.store.states import State

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)

CSV = "text/csv; charset=utf-8; header=present"

#: Example bodies of all kinds, for `/docs`.
EXAMPLES: dict[str, Example] = {
    name: {"summary": example.summary, "value": example.spec}
    for kind in kinds.known().values()
    for name, example in kind.examples.items()
}
#: `kinds.parse_job` parses the body, because its errors are clearer than those of a union of models.
Spec = Annotated[
    JobSpec,
    PlainValidator(kinds.parse_job, json_schema_input_type=kinds.posted()),
    Body(openapi_examples=EXAMPLES),
]
StateFilter = Annotated[State | None, Query(description="Only jobs in this state.")]
ModelFilter = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only jobs of this model.")]
#: The maximum is twice the largest event number.
After = Annotated[int, Query(ge=0, le=2**32, description="Number of the last event already seen.")]
EventLimit = Annotated[int, Query(ge=1, le=1000)]
LastEventId = Annotated[str | None, Header(max_length=20, pattern=r"^[0-9]*$")]


@router.post("", status_code=202, response_model=wire.Job)
@policy(Scope.TRAIN, idempotent=True, audit=True)
def create_job(spec: Spec, runtime: RuntimeDep, caller: CallerDep) -> Response:
    """Queue a job. Everything that the spec names is checked now, so a typing error does not fail the job later."""
    made = service.create(runtime.database, runtime.sender, spec, caller, settings=runtime.settings)
    return made.response()


@router.post("/validate", response_model=wire.JobCheck)
@policy(Scope.READ, audit=False)
def validate_job(spec: Spec, runtime: RuntimeDep) -> CheckedJob:
    """Check a job without posting it: the spec with defaults filled in, and an estimate; faults as in `POST /jobs`."""
    return service.check(runtime.database, spec, runtime.settings)


@router.get("", response_model=wire.Listing[wire.Job])
@policy(Scope.READ, etag=True)
def list_jobs(
    database: DatabaseDep,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    state: StateFilter = None,
    model: ModelFilter = None,
) -> Page[JobRow]:
    """List jobs, newest first, without the long parts of results and specs, such as curves."""
    return service.list_page(database, limit, cursor, state, model)


@router.get("/{job_id}", response_model=wire.Job)
@policy(Scope.READ, etag=True)
async def get_job(job_id: JobId, runtime: RuntimeDep) -> JobRow:
    """Return a job."""
    return await service.get_and_follow(runtime, job_id)


@router.get(
    "/{job_id}/events",
    response_model=wire.Listing[wire.JobEvent],
    responses={
        200: {"content": {stream.MEDIA_TYPE: {"schema": {"type": "string"}}}},
        204: {
            "description": "As a stream: the job has ended and every event was received; do not reconnect."
        },
    },
)
@policy(Scope.READ, etag=True, event_stream=True)
async def get_events(
    job_id: JobId,
    request: Request,
    runtime: RuntimeDep,
    after: After = 0,
    limit: EventLimit = 1000,
    last_event_id: LastEventId = None,
) -> Response | Page[wire.JobEvent]:
    """List events, or stream them when the request accepts `text/event-stream`."""
    seen = int(last_event_id) if last_event_id else after
    if stream.MEDIA_TYPE in request.headers.get("accept", ""):
        return await _stream(runtime, job_id, seen)
    page = await run_in_threadpool(service.events_after, runtime.database, job_id, seen, limit)
    return Page([wire.JobEvent(**event.as_dict()) for event in page.data], page.next_cursor)


@router.post("/{job_id}/cancel", status_code=202, response_model=wire.Job)
@policy(Scope.TRAIN, audit=True)
def cancel_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Cancel a job. Repeating the request is allowed; 409 once the job has ended."""
    return service.cancel(runtime, job_id, caller)


@router.post("/{job_id}/pause", status_code=202, response_model=wire.Job)
@policy(Scope.TRAIN, audit=True)
def pause_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Pause a job: it stores a checkpoint and releases its worker. 409 once it has ended or is being cancelled."""
    return service.pause(runtime, job_id, caller)


@router.post("/{job_id}/resume", status_code=202, response_model=wire.Job)
@policy(Scope.TRAIN, audit=True)
def resume_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> JobRow:
    """Resume a paused job from its checkpoint, with the same result as without the pause. 409 in any other state."""
    return service.resume(runtime, job_id, caller)


@router.post("/{job_id}/retry", status_code=202, response_model=wire.Job)
@policy(Scope.TRAIN, idempotent=True, audit=True)
def retry_job(job_id: JobId, runtime: RuntimeDep, caller: CallerDep) -> Response:
    """Queue a new job with the spec of one that failed or was cancelled. 409 in any other state."""
    made = service.retry(runtime.database, runtime.sender, job_id, caller, settings=runtime.settings)
    return made.response()


@router.delete("/{job_id}", status_code=204)
@policy(Scope.TRAIN, audit=True)
def delete_job(job_id: JobId, database: DatabaseDep, caller: CallerDep) -> None:
    """Delete a job that has ended, with its events and its output. What it published stays. 409 in any other state."""
    service.delete(database, job_id, caller)


@router.get(
    "/{job_id}/table.csv",
    response_class=Response,
    responses={200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
@policy(Scope.READ, etag=True)
def get_table(job_id: JobId, database: DatabaseDep) -> Response:
    """Return the table of a finished job as CSV. 409 for a kind without a table."""
    return Response(service.table(database, job_id), media_type=CSV)


@router.get(
    "/{job_id}/plot.svg",
    response_class=Response,
    responses={200: {"content": {SVG: {"schema": {"type": "string"}}}}},
)
@policy(Scope.READ, etag=True)
def get_plot(job_id: JobId, database: DatabaseDep) -> Response:
    """Return the learning curves of a finished job as SVG. 409 for a kind without curves."""
    return Response(service.plot(database, job_id), media_type=SVG)


@router.get(
    "/{job_id}/output",
    response_class=StreamingResponse,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
@policy(Scope.READ, etag=True)
def get_output(job_id: JobId, database: DatabaseDep) -> StreamingResponse:
    """Return the file that a finished job has written. 409 for a kind that writes no file."""
    output, chunks = service.output(database, job_id)
    headers = {
        "Content-Length": str(output.size_bytes),
        "Content-Disposition": f'attachment; filename="{job_id}.{output.extension}"',
        "ETag": f'"{output.sha256}"',
        "Model-Version": output.made_by,
    }
    return StreamingResponse(chunks, media_type=output.media_type, headers=headers)


async def _stream(runtime: Runtime, job_id: str, seen: int) -> Response:
    job = await run_in_threadpool(service.get, runtime.database, job_id)
    if job.ended and await run_in_threadpool(service.all_seen, runtime.database, job.id, seen):
        return Response(status_code=204)
    events = stream.EventStream(runtime.database, runtime.live, job.id, seen, on_end=runtime.serving.refresh)
    return EventSourceResponse(events.frames(), headers=stream.HEADERS)
