"""Running one job from claim to end. Celery brings the message; what it means is decided by the row."""

import contextlib
import logging
import secrets
import tempfile
import time
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Connection

from core import logs, wire
from core.errors import Invalid, TagsmithError, Unavailable
from core.store import events, jobs
from core.store.jobs import JobRow
from core.store.states import State
from worker.checkpoints import Checkpoints
from worker.context import Context, Note, Outcome, Runner, Running, Workplace
from worker.lease import Lease
from worker.limits import Limits
from worker.reporter import Place, Reporter, place_of, publish_since

if TYPE_CHECKING:
    from core.tracing.otel import Tracing

# Hours of training are worth waiting for a database that restarts.
PERSIST_S = 120.0
PERSIST_PAUSE_S = 1.0
# How long a worker that is told to stop may spend on a last checkpoint. Less than the patience of its lease.
LAST_S = 1.5
# How long one that is told to pause may: a gigabyte of state to a slow database.
PAUSE_S = 120.0

Log = logging.LoggerAdapter[logging.Logger]
_log = logging.getLogger(__name__)


class Interrupted(Enum):
    """Why a job stopped before it had a result."""

    #: A user cancelled it.
    CANCELLED = auto()
    #: A user paused it.
    PAUSED = auto()
    #: The worker shuts down.
    STOPPED = auto()
    #: Another worker has it, or it has ended.
    LOST = auto()


def runners() -> dict[str, Runner]:
    """What runs each kind of job: one entry a kind."""
    # Imported late: this pulls in numba, which reads its settings from the environment when imported.
    from worker.evaluate import run_evaluate  # noqa: PLC0415
    from worker.experiments import run_compare, run_tune  # noqa: PLC0415
    from worker.tag import run_tag  # noqa: PLC0415
    from worker.train import run_train  # noqa: PLC0415

    return {
        "train": run_train,
        "compare": run_compare,
        "tune": run_tune,
        "evaluate": run_evaluate,
        "tag": run_tag,
    }


def run_job(context: Context, job_id: str) -> None:
    """Do what the row of a job asks for, if it is still to be done and nobody else does it."""
    # New for each claim, so that not even an earlier claim of this same process passes for this one.
    owner = f"{context.worker_id}/{secrets.token_hex(8)}"
    with context.db.write() as conn:
        job = jobs.claim(conn, job_id, owner, context.settings.lease_seconds)
    if job is None:
        _log.info("nothing to do: another worker has the job or it has ended", extra={"job_id": job_id})
        return
    # Other parts of the worker that write a line about it, in other threads too, need not know its ids.
    logs.bind(job_id=job.id, request_id=job.request_id)
    if context.tracing is None:
        _hold(context, job, owner)
    else:
        _hold_traced(context, context.tracing, job, owner)


def _hold_traced(context: Context, tracing: "Tracing", job: JobRow, owner: str) -> None:
    """Run a claimed job within a span of the trace in which it was posted."""
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
    """Run a claimed job while holding its lease; give how it was left, None when it is another's."""
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
        reporter = Reporter(context, lease, job.last_seq - 1, _told(context, job))
        reporter.publish()
        ended = _work(context, job, lease, reporter, log)
    if ended is not None:
        reporter.publish()
    log.extra = {**(log.extra or {}), "seconds": round(time.monotonic() - started_at, 3)}
    log.info("job left as %s", "lost" if ended is None else ended.state.value)
    return ended


def _told(context: Context, job: JobRow) -> dict[str, Place]:
    """The last pass and the last run of which an earlier attempt has told."""
    if job.attempt == 1:
        return {}
    with context.db.read() as conn:
        newest = {kind: events.newest(conn, job.id, kind) for kind in ("pass", "run")}
    return {kind: place_of(event.data) for kind, event in newest.items() if event is not None}


def give_back(context: Context, job_id: str, owner: str) -> JobRow:
    """Return a job to the queue because this worker shuts down, and tell the others at once."""
    with context.db.write() as conn:
        job = jobs.requeue(conn, job_id, owner)
    if job.state is State.QUEUED and context.send(job):
        with context.db.write() as conn:
            jobs.mark_sent(conn, job_id)
    publish_since(context.db, context.redis, job_id, job.last_seq - 1)
    return job


def drop(context: Context, job_id: str, owner: str) -> JobRow:
    """End a job as cancelled though its work has not stopped yet, and tell those who watch it."""
    with context.db.write() as conn:
        job = jobs.cancelled(conn, job_id, owner)
    publish_since(context.db, context.redis, job_id, job.last_seq - 1)
    return job


def _work(context: Context, job: JobRow, lease: Lease, reporter: Reporter, log: Log) -> JobRow | None:
    """Run a claimed job and store how it ended; None when that could not be done and the job is another's."""

    def end(ending: Callable[[Connection], JobRow]) -> JobRow:
        return _persist(context, reporter, ending)

    def fail(error: dict[str, Any]) -> JobRow:
        return end(lambda conn: jobs.fail(conn, job.id, lease.owner, error))

    try:
        try:
            return _run(context, job, lease, reporter, end)
        except (jobs.LeaseLost, Unavailable):
            raise
        except TagsmithError as error:
            log.info("job failed: %s", error.message)
            return fail(_described(error))
        except Exception:
            log.exception("job failed by a defect")
            # What went wrong inside is for the logs: a user can do nothing with it.
            return fail({"code": "internal_error", "message": "the job failed by an internal error"})
    except jobs.LeaseLost as error:
        log.warning("job lost: %s", error)
    except Unavailable as error:
        # The database is away for long. The lease runs out, and the reaper, when there is a database again,
        # gives the job another try if it has one left.
        log.error("job abandoned: %s", error)  # noqa: TRY400  # the traceback says nothing more
    return None


def _run(
    context: Context,
    job: JobRow,
    lease: Lease,
    reporter: Reporter,
    end: Callable[[Callable[[Connection], JobRow]], JobRow],
) -> JobRow | None:
    with tempfile.TemporaryDirectory(prefix="tagsmith-job-") as scratch:
        workplace = Workplace(context.settings, context.db, Path(scratch))
        checkpoints = Checkpoints(context, lease, reporter, Path(scratch))
        limits = Limits(context.settings, job, lease)
        running = _runner(context, job)(job, workplace)
        outcome = _drive(context, running, lease, limits, reporter, checkpoints)
        if outcome is Interrupted.LOST:
            return None
        if outcome is Interrupted.CANCELLED:
            return end(lambda conn: jobs.cancelled(conn, job.id, lease.owner))
        if outcome is Interrupted.PAUSED:
            checkpoints.keep_last(PAUSE_S)
            return end(lambda conn: jobs.suspended(conn, job.id, lease.owner))
        if outcome is Interrupted.STOPPED:
            checkpoints.keep_last(LAST_S)
            reporter.flush()
            return give_back(context, job.id, lease.owner)
        ended = end(lambda conn: jobs.succeed(conn, job.id, lease.owner, outcome.store(conn)))
    if outcome.serves:
        wire.bump_registry(context.redis)
    return ended


def _runner(context: Context, job: JobRow) -> Runner:
    runner = context.runners.get(job.kind)
    if runner is None:
        # An older worker beside a newer API: a kind that no version knows is refused when it is posted.
        raise Invalid(f"the worker cannot run jobs of kind {job.kind}", code="unknown_kind")
    return runner


def _drive(
    context: Context,
    running: Running,
    lease: Lease,
    limits: Limits,
    reporter: Reporter,
    checkpoints: Checkpoints,
) -> Outcome | Interrupted:
    """Take the steps of a job, asking between any two whether to go on."""
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
                said = next(running)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            limits.check(said)
            if isinstance(said, Note):
                reporter.note(said)
            elif said is not None:
                reporter.report(said)
                checkpoints.offer(said)


def _persist(context: Context, reporter: Reporter, ending: Callable[[Connection], JobRow]) -> JobRow:
    """Store the last events and the end of a job, waiting for a database that is away.

    When a commit succeeded but its answer was lost, the next try finds the lease gone: nothing is done twice.
    """
    deadline = time.monotonic() + PERSIST_S
    while True:
        try:
            reporter.flush()
            with context.db.write() as conn:
                return ending(conn)
        except Unavailable:
            if time.monotonic() > deadline or context.stop.is_set():
                raise
            time.sleep(PERSIST_PAUSE_S)


def _described(error: TagsmithError) -> dict[str, Any]:
    places = [
        {"reason": fault.reason, "line": fault.line, "pointer": fault.pointer} for fault in error.faults
    ]
    return {"code": error.code, "message": error.message} | ({"errors": places} if places else {})
