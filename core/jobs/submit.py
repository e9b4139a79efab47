"""Posting a job: check its spec, choose its queue, store it."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import jobs, kinds
from tagsmith.core.jobs.input_checks import InputChecks
from tagsmith.core.jobs.jobs import JobRow, Origin
from tagsmith.core.jobs.kind import Prepared
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.service import queues
from tagsmith.core.service.settings import Settings

#: Maximum number of tokens of a quick job: about ten seconds with a common trainer.
QUICK_TOKENS = 5_000_000
#: The number of recent jobs whose speed an estimate uses.
RECENT = 50


@dataclass(frozen=True, slots=True)
class Estimate:
    """The expected cost of a job: tokens over all passes, its queue, and seconds if similar jobs have run before."""

    tokens: int
    seconds: float | None
    queue: str


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """A job that passed its checks: the spec as it would be stored, and its expected cost."""

    spec: dict[str, Any]
    estimate: Estimate


def post(conn: Connection, spec: JobSpec, settings: Settings, origin: Origin | None = None) -> JobRow:
    """Check a spec by the rules of its kind, and store the job. What it uses cannot be deleted until it has ended."""
    limit = settings.max_queued_jobs
    if jobs.waiting(conn) >= limit:
        message = f"{limit} jobs are waiting. Post this one again when some have ended."
        raise Unavailable(message, code="queue_full")
    inputs = InputChecks(conn, settings)
    prepared = _prepare(spec, inputs)
    return jobs.create(
        conn,
        kind=spec.kind,
        spec=prepared.spec.model_dump(mode="json"),
        uses=inputs.uses,
        model=prepared.model,
        origin=origin,
        queue=_queue(prepared),
    )


def check(conn: Connection, spec: JobSpec, settings: Settings) -> CheckedJob:
    """Check a spec as `post` does, except for room in the queue, without storing a job. This is a read."""
    prepared = _prepare(spec, InputChecks(conn, settings, holds=False))
    stored = prepared.spec.model_dump(mode="json")
    speed = _recent_speed(conn, stored)
    seconds = None if speed is None else prepared.tokens / speed
    return CheckedJob(stored, Estimate(prepared.tokens, seconds, _queue(prepared)))


def _prepare(spec: JobSpec, inputs: InputChecks) -> Prepared:
    kind = kinds.of(spec)
    # Pinned now: a corpus uploaded later under the same name does not change the job.
    spec = spec.with_corpora(lambda reference, pointer: inputs.corpus(reference, pointer).id)
    prepared = kind.prepare(spec, inputs)
    inputs.promotion(kind.promotion(spec))
    return prepared


def _queue(prepared: Prepared) -> str:
    return queues.QUICK if prepared.tokens <= QUICK_TOKENS else queues.SLOW


def _recent_speed(conn: Connection, spec: dict[str, Any]) -> float | None:
    """Return the median tokens per second of recent jobs with the same trainer; None if there are none."""
    trainer = _trainer_of(spec)
    if trainer is None:
        return None
    recent = jobs.recent_progress(conn, RECENT)
    speeds = [
        progress.get("tokens_per_second") for other, progress in recent if _trainer_of(other) == trainer
    ]
    known = [speed for speed in speeds if speed]
    return median(known) if known else None


def _trainer_of(spec: dict[str, Any]) -> str | None:
    return (spec.get("trainer") or {}).get("kind")
