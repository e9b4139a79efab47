"""Posting a job: check its spec, choose its queue, store it."""

from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import jobs, kinds
from tagsmith.core.jobs.intake import Intake
from tagsmith.core.jobs.jobs import JobRow, Origin
from tagsmith.core.jobs.spec import JobSpec
from tagsmith.core.service import queues
from tagsmith.core.service.settings import Settings

#: Maximum number of tokens of a quick job: about ten seconds with a common trainer.
QUICK_TOKENS = 5_000_000


def post(conn: Connection, spec: JobSpec, settings: Settings, origin: Origin | None = None) -> JobRow:
    """Check a spec by the rules of its kind, and store the job. What it uses cannot be deleted until it has ended."""
    limit = settings.max_queued_jobs
    if jobs.waiting(conn) >= limit:
        raise Unavailable(f"{limit} jobs wait already; come back when some have ended", code="queue_full")
    kind, intake = kinds.of(spec), Intake(conn, settings)
    # Pinned now: a corpus uploaded later under the same name does not change the job.
    spec = spec.with_corpora(lambda reference, pointer: intake.corpus(reference, pointer).id)
    prepared = kind.prepare(spec, intake)
    intake.promotion(kind.promotion(spec))
    return jobs.create(
        conn,
        kind=kind.name,
        spec=prepared.spec.model_dump(mode="json"),
        uses=intake.uses,
        model=prepared.model,
        origin=origin,
        queue=queues.QUICK if prepared.tokens <= QUICK_TOKENS else queues.SLOW,
    )
