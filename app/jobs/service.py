"""Operations on jobs."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.engine import Connection

from tagsmith import wire
from tagsmith.app.deps import Caller, Runtime
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.jobs.sender import JobSender
from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.jobs import control, events, jobs, kinds, submit
from tagsmith.core.jobs.events import Event
from tagsmith.core.jobs.jobs import JobRow, Origin
from tagsmith.core.jobs.kind import JobKind, Output
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.jobs.submit import CheckedJob
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import blobs, clock
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tagsmith.core.store.paging import Page
from tagsmith.core.store.states import State

#: A job that succeeded this recently may have published a model that serving has not loaded yet.
JUST_NOW = timedelta(seconds=10)
#: Seconds that a client should wait before it requests the state of a new job.
RETRY_AFTER_S = "1"


def create(
    database: Database,
    sender: JobSender,
    spec: JobSpec,
    caller: Caller,
    *,
    settings: Settings,
    retry_of: str | None = None,
) -> ChangeResponse[wire.Job]:
    """Store a job that passes the checks of its kind, then notify the workers."""
    if kinds.of(spec).promotion(spec) is not None:
        # A job with a promotion changes which version is served.
        caller.require(Scope.PROMOTE)
    origin = Origin(caller.request_id, caller.traceparent, retry_of)
    with database.write() as conn:
        job = submit.post(conn, spec, settings, origin)
        made = ChangeResponse(wire.Job.model_validate(job), 202, path_of(job), {"retry-after": RETRY_AFTER_S})
        caller.respond(conn, made)
    sender.send(database, job)
    return made


def check(database: Database, spec: JobSpec, settings: Settings) -> CheckedJob:
    """Check a job as posting it would, and estimate what it takes. Nothing is stored."""
    with database.read() as conn:
        return submit.check(conn, spec, settings)


def path_of(job: JobRow) -> str:
    """Return the path of a job."""
    return f"/jobs/{job.id}"


def get(database: Database, job_id: str) -> JobRow:
    """Return one job, by its id or its last six characters."""
    return _get(database, job_id)[0]


def _get(database: Database, job_id: str) -> tuple[JobRow, bool]:
    """Return a job, and whether it has just succeeded."""
    with database.read() as conn:
        job = jobs.get(conn, control.resolve(conn, job_id))
        ended_at = job.finished_at if job.state is State.SUCCEEDED else None
        return job, ended_at is not None and clock.now(conn) - ended_at < JUST_NOW


async def get_and_follow(runtime: Runtime, job_id: str) -> JobRow:
    """Return one job. If it has just succeeded, load its model first, so that the caller can tag with it at once."""
    job, just_succeeded = await run_in_threadpool(_get, runtime.database, job_id)
    if just_succeeded:
        await runtime.serving.refresh()
    return job


def list_page(
    database: Database, limit: int, cursor: str | None, state: State | None, model: str | None
) -> Page[JobRow]:
    """List jobs, newest first."""
    with database.read() as conn:
        return jobs.page(conn, limit, cursor, state=state, model=model)


def events_after(database: Database, job_id: str, after: int, limit: int) -> Page[Event]:
    """List stored events after number `after`; the cursor is the number of the last one."""
    with database.read() as conn:
        job_id = jobs.get(conn, control.resolve(conn, job_id)).id
        found = events.after(conn, job_id, after, limit + 1)
    data = found[:limit]
    return Page(data, str(data[-1].seq) if len(found) > limit else None)


def all_seen(database: Database, job_id: str, seen: int) -> bool:
    """Whether a job has ended and no event after number `seen` is stored. Old events are deleted before their job."""
    with database.read() as conn:
        job = jobs.get(conn, job_id)
        return job.ended and not events.after(conn, job.id, seen, 1)


def cancel(runtime: Runtime, job_id: str, caller: Caller) -> JobRow:
    """Request the cancellation of a job, and publish the event."""
    return _ask(runtime, job_id, caller, control.cancel)


def pause(runtime: Runtime, job_id: str, caller: Caller) -> JobRow:
    """Request a pause of a job, and publish the event."""
    return _ask(runtime, job_id, caller, control.pause)


def resume(runtime: Runtime, job_id: str, caller: Caller) -> JobRow:
    """Queue a paused job again, publish the event and notify the workers."""
    job = _ask(runtime, job_id, caller, control.resume)
    if job.state is State.QUEUED:
        runtime.sender.send(runtime.database, job)
    return job


def retry(
    database: Database, sender: JobSender, job_id: str, caller: Caller, *, settings: Settings
) -> ChangeResponse[wire.Job]:
    """Queue a new job with the spec of one that failed or was cancelled."""
    with database.read() as conn:
        job = control.retryable(conn, control.resolve(conn, job_id))
    return create(database, sender, kinds.parse_job(job.spec), caller, settings=settings, retry_of=job.id)


def delete(database: Database, job_id: str, caller: Caller) -> None:
    """Delete a job that has ended."""
    with database.write() as conn:
        control.delete(conn, control.resolve(conn, job_id))
        caller.record(conn)


def _ask(runtime: Runtime, job_id: str, caller: Caller, wish: Callable[[Connection, str], JobRow]) -> JobRow:
    with runtime.database.write() as conn:
        job_id = control.resolve(conn, job_id)
        before = jobs.get(conn, job_id).last_seq
        job = wish(conn, job_id)
        caller.record(conn)
        added = events.after(conn, job_id, before, job.last_seq - before) if job.last_seq > before else []
    if runtime.redis is not None and added:
        messages.publish_events(runtime.redis, job_id, [event.as_dict() for event in added])
    return job


def table(database: Database, job_id: str) -> str:
    """Return the table of a job as CSV."""
    job = get(database, job_id)
    if (write := _kind(job).table) is None:
        raise Conflict(f"Jobs of kind {job.kind} have no table.", code="no_table")
    return write(_result(job))


def plot(database: Database, job_id: str) -> str:
    """Return the learning curves of a job as SVG."""
    job = get(database, job_id)
    if (draw := _kind(job).plot) is None:
        raise Conflict(f"Jobs of kind {job.kind} have no curves.", code="no_plot")
    return draw(_result(job))


def output(database: Database, job_id: str) -> tuple[Output, Iterator[bytes]]:
    """Return the file that a job has written. No transaction stays open while a slow client reads it."""
    job = get(database, job_id)
    if (describe := _kind(job).output) is None:
        raise Conflict(f"Jobs of kind {job.kind} have no output.", code="no_output")
    described, output_id = describe(_result(job)), jobs.output_id(job.id)
    with database.read() as conn:
        if not blobs.exists(conn, output_id):
            raise NotFound(
                f"The output of job {job.id} was deleted some days after its end. Run the job again.",
                code="output_deleted",
            )
    return described, blobs.stream(database, output_id)


def _kind(job: JobRow) -> JobKind[Any]:
    kind = kinds.known().get(job.kind)
    if kind is None:
        # A newer server that shares the database has stored the job.
        raise Conflict(
            f"This server does not know jobs of kind {job.kind}. Update the server.", code="unknown_kind"
        )
    return kind


def _result(job: JobRow) -> dict[str, Any]:
    if job.result is None:
        raise Conflict(f"Job {job.id} has no result, because it is {job.state.value}.", code="no_result")
    return job.result
