"""Run one job from claim to end. Celery delivers the message; the row of the job decides what to do."""

import contextlib
import logging
import secrets
import time
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Connection

from tagsmith.core.base import disk
from tagsmith.core.base.errors import Invalid, TagsmithError, Unavailable
from tagsmith.core.jobs import events, jobs, kinds, leases
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.jobs.kind import JobKind
from tagsmith.core.jobs.resources import ROOM_POLL_S, WAITING_FOR_ROOM, JobResources
from tagsmith.core.jobs.runner_interface import JobRun, Note, Outcome, Waiting
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service import logs
from tagsmith.core.store.states import State
from tagsmith.worker import scratch
from tagsmith.worker.checkpoints import Checkpoints
from tagsmith.worker.context import Context, Runner
from tagsmith.worker.lease import Lease
from tagsmith.worker.limits import ResourceLimits
from tagsmith.worker.reporter import Position, Reporter, position_of, publish_since

if TYPE_CHECKING:
    from tagsmith.core.service.tracing.otel import Tracing

# A database that restarts must not lose hours of training, so the worker waits for it this long.
PERSIST_S = 120.0
PERSIST_PAUSE_S = 1.0
# A full disk needs a person, so the worker waits for room without a limit, and tries less and less often.
MAX_ROOM_PAUSE_S = 10.0
# How long a worker that shuts down may spend on a last checkpoint. Less than STOP_TIMEOUT_S of its lease.
LAST_S = 1.5
# How long a worker that pauses a job may spend on it: enough for a gigabyte of state and a slow database.
PAUSE_S = 120.0

Log = logging.LoggerAdapter[logging.Logger]
_log = logging.getLogger(__name__)


class Interrupted(Enum):
    """Why a job stopped without a result."""

    #: A user cancelled it.
    CANCELLED = auto()
    #: A user paused it.
    PAUSED = auto()
    #: The worker shuts down.
    STOPPED = auto()
    #: Another worker has the job, or the job has ended.
    LOST = auto()


def runners() -> dict[str, Runner]:
    """Return the runner of every job kind."""
    return {name: partial(_start, kind) for name, kind in kinds.known().items()}


def _start(kind: JobKind[Any], resources: JobResources) -> JobRun:
    return kind.run(kinds.parse_job(resources.job.spec), resources)


def run_job(context: Context, job_id: str) -> None:
    """Claim and run a job. Does nothing when another worker has it or it has ended."""
    # New for each claim, so that an earlier claim of this process cannot be confused with this one.
    owner = f"{context.worker_id}/{secrets.token_hex(8)}"
    with context.db.write() as conn:
        job = leases.claim(
            conn, job_id, owner, context.settings.lease_seconds, max_losses=context.settings.max_losses
        )
    if job is None:
        _log.info("nothing to do: another worker has the job or it has ended", extra={"job_id": job_id})
        return
    # Every log line about the job has its ids, in all parts and threads of the worker.
    logs.bind(job_id=job.id, request_id=job.request_id)
    if context.tracing is None:
        _hold(context, job, owner)
    else:
        _hold_traced(context, context.tracing, job, owner)


def _hold_traced(context: Context, tracing: "Tracing", job: JobRow, owner: str) -> None:
    """Run a claimed job in a span that continues the trace of the request that created it."""
    attributes: dict[str, str | int] = {
        "tagsmith.job.id": job.id,
        "tagsmith.job.kind": job.kind,
        "tagsmith.job.queue": job.queue,
        "tagsmith.job.attempt": job.attempt,
    }
    with tracing.taken_up(f"job {job.kind}", job.traceparent, attributes) as span:
        logs.bind_also(**tracing.ids())
        ended = _hold(context, job, owner)
        span.set_attribute("tagsmith.job.state", "lost" if ended is None else ended.state.value)
        if ended is not None and ended.error is not None:
            tracing.failed(span, ended.error["code"])


def _hold(context: Context, job: JobRow, owner: str) -> JobRow | None:
    """Run a claimed job while holding its lease. Return its final row, or None when the lease was lost."""
    log = Log(
        _log, {"job_id": job.id, "request_id": job.request_id, "kind": job.kind, "attempt": job.attempt}
    )
    log.info("job started")
    started_at = time.monotonic()
    with Lease(
        context,
        job.id,
        owner,
        give_back=lambda: give_back(context, job.id, owner),
        drop=lambda: drop(context, job.id, owner),
        worked_before_s=job.worked_seconds,
    ) as lease:
        reporter = Reporter(context, lease, job.last_seq - 1, _reported_before(context, job))
        reporter.publish()
        ended = _work(context, job, lease, reporter, log)
    if ended is not None:
        reporter.publish()
    log.extra = {**(log.extra or {}), "seconds": round(time.monotonic() - started_at, 3)}
    log.info("job left as %s", "lost" if ended is None else ended.state.value)
    return ended


def _reported_before(context: Context, job: JobRow) -> dict[str, Position]:
    """Return the last pass and the last run that an earlier attempt has reported."""
    if job.attempt == 1:
        return {}
    with context.db.read() as conn:
        newest = {kind: events.newest(conn, job.id, kind) for kind in ("pass", "run")}
    return {kind: position_of(event.data) for kind, event in newest.items() if event is not None}


def give_back(context: Context, job_id: str, owner: str) -> JobRow:
    """Return a job to the queue because this worker shuts down, and notify the other workers at once."""
    with context.db.write() as conn:
        job = leases.requeue(conn, job_id, owner)
    if job.state is State.QUEUED and context.send(job):
        with context.db.write() as conn:
            jobs.mark_sent(conn, job_id)
    publish_since(context.db, context.redis, job_id, job.last_seq - 1)
    return job


def drop(context: Context, job_id: str, owner: str) -> JobRow:
    """End a job as cancelled although its work has not stopped yet, and notify its watchers."""
    with context.db.write() as conn:
        job = leases.cancelled(conn, job_id, owner)
    publish_since(context.db, context.redis, job_id, job.last_seq - 1)
    return job


def _work(context: Context, job: JobRow, lease: Lease, reporter: Reporter, log: Log) -> JobRow | None:
    """Run a claimed job and store how it ended. Return None when the lease was lost."""

    def end(ending: Callable[[Connection], JobRow]) -> JobRow:
        return _persist(context, lease, reporter, ending)

    def fail(error: dict[str, Any]) -> JobRow:
        return end(lambda conn: leases.fail(conn, job.id, lease.owner, error))

    try:
        try:
            return _run(context, job, lease, reporter, end)
        except (leases.LeaseLost, Unavailable) as error:
            if not isinstance(error, disk.DiskFull):
                raise
            log.info("job failed: %s", error.message)
            return fail(_error_fields(error))
        except TagsmithError as error:
            log.info("job failed: %s", error.message)
            return fail(_error_fields(error))
        except Exception as error:
            if disk.is_full(error):
                log.warning("job failed: no room on the disk", extra={"error": str(error)})
                return fail(_error_fields(disk.full("the worker")))
            log.exception("job failed with an internal error")
            # Only the logs get the details: they do not help a user.
            return fail(
                {
                    "code": "internal_error",
                    "message": "The job failed with an internal error. The log of the worker has the details.",
                }
            )
    except leases.LeaseLost as error:
        log.warning("job lost: %s", error)
    except Unavailable as error:
        # The database stays unavailable and the lease expires. When the database is back, the reaper queues the job
        # again if it has an attempt left.
        log.error("job abandoned: %s", error)  # noqa: TRY400  # the traceback adds nothing
    return None


def _run(
    context: Context,
    job: JobRow,
    lease: Lease,
    reporter: Reporter,
    end: Callable[[Callable[[Connection], JobRow]], JobRow],
) -> JobRow | None:
    with scratch.folder() as path:
        registry = Registry(context.redis)
        resources = JobResources(context.settings, context.db, path, job, registry)
        checkpoints = Checkpoints(context, lease, reporter, path)
        limits = ResourceLimits(context.settings, job, lease)
        running = _runner(context, job)(resources)
        outcome = _drive(context, running, lease, limits, reporter, checkpoints)
        if outcome is Interrupted.LOST:
            return None
        if outcome is Interrupted.CANCELLED:
            return end(_as_cancelled(lease))
        if outcome is Interrupted.PAUSED:
            checkpoints.keep_last(PAUSE_S)
            return end(lambda conn: leases.suspended(conn, job.id, lease.owner))
        if outcome is Interrupted.STOPPED:
            checkpoints.keep_last(LAST_S)
            reporter.flush()
            return give_back(context, job.id, lease.owner)
        progress = reporter.progress
        return end(lambda conn: leases.succeed(conn, job.id, lease.owner, outcome.store(conn), progress))


def _runner(context: Context, job: JobRow) -> Runner:
    runner = context.runners.get(job.kind)
    if runner is None:
        # This worker is older than the API: the API itself refuses kinds that it does not know.
        raise Invalid(
            f"This worker cannot run jobs of kind {job.kind}. Update the worker.", code="unknown_kind"
        )
    return runner


def _drive(
    context: Context,
    running: JobRun,
    lease: Lease,
    limits: ResourceLimits,
    reporter: Reporter,
    checkpoints: Checkpoints,
) -> Outcome | Interrupted:
    """Run the steps of a job. Check between two steps whether to continue."""
    with contextlib.closing(running):
        while True:
            if lease.lost:
                return Interrupted.LOST
            if lease.cancel:
                return Interrupted.CANCELLED
            if lease.pause:
                return Interrupted.PAUSED
            if context.stop.is_set():
                return Interrupted.STOPPED
            try:
                update = next(running)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            limits.check(update)
            if isinstance(update, Note):
                reporter.note(update)
            elif isinstance(update, Waiting):
                reporter.waiting(update.message)
            elif update is not None:
                reporter.report(update)
                checkpoints.offer(update)


def _persist(
    context: Context, lease: Lease, reporter: Reporter, ending: Callable[[Connection], JobRow]
) -> JobRow:
    """Store the last events and the end of a job. Retry while the database is unavailable or its disk is full.

    If a commit succeeds but its response is lost, the next attempt finds the lease released: nothing happens twice.
    """
    deadline = time.monotonic() + PERSIST_S
    pause_s = PERSIST_PAUSE_S
    while True:
        try:
            reporter.flush()
            with context.db.write() as conn:
                return ending(conn)
        except disk.DiskFull:
            if context.stop.is_set():
                raise
            _wait_for_room(context, lease, reporter, pause_s)
            pause_s = min(2 * pause_s, MAX_ROOM_PAUSE_S)
            deadline = time.monotonic() + PERSIST_S
            if lease.cancel:
                ending = _as_cancelled(lease)
        except Unavailable:
            if time.monotonic() > deadline or context.stop.is_set():
                raise
            time.sleep(PERSIST_PAUSE_S)


def _wait_for_room(context: Context, lease: Lease, reporter: Reporter, pause_s: float) -> None:
    """Wait until it is time to try again, or until the job must stop."""
    end = time.monotonic() + pause_s
    while time.monotonic() < end and not lease.cancel and not lease.lost:
        reporter.waiting(WAITING_FOR_ROOM)
        if context.stop.wait(ROOM_POLL_S):
            return


def _as_cancelled(lease: Lease) -> Callable[[Connection], JobRow]:
    return lambda conn: leases.cancelled(conn, lease.job_id, lease.owner)


def _error_fields(error: TagsmithError) -> dict[str, Any]:
    faults = [
        {"reason": fault.reason, "type": fault.type, "line": fault.line, "pointer": fault.pointer}
        for fault in error.faults
    ]
    return {"code": error.code, "message": error.message} | ({"errors": faults} if faults else {})
