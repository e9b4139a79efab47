"""What can be done with jobs."""

from redis import Redis
from sqlalchemy.engine import Connection

from app.jobs.sender import JobSender
from core import specs, wire
from core.errors import Fault, Invalid, NotFound
from core.store import corpora, events, jobs, references
from core.store.corpora import CorpusRow
from core.store.engine import Database
from core.store.events import Event
from core.store.jobs import JobRow
from core.store.paging import Page
from core.store.references import Target
from core.store.states import State


def create(database: Database, sender: JobSender, spec: specs.JobSpec, request_id: str) -> JobRow:
    """Store a job whose spec fits its corpora, then tell the workers."""
    with database.write() as conn:
        used = _check(conn, spec)
        start = None if spec.init is None else _start(conn, spec.init)
        if start is not None:
            # From now on the job means this one version, wherever aliases move before it runs.
            spec = spec.model_copy(update={"init": str(start)})
        job = jobs.create(
            conn,
            kind=spec.kind,
            spec=spec.model_dump(mode="json"),
            corpora_used=used,
            versions_used=[] if start is None else [(start.model, start.version)],
            model=spec.model,
            request_id=request_id,
        )
    sender.send(database, job.id)
    return job


def get(database: Database, job_id: str) -> JobRow:
    """Give one job."""
    with database.read() as conn:
        return jobs.get(conn, job_id)


def page(
    database: Database, limit: int, cursor: str | None, state: State | None, model: str | None
) -> Page[JobRow]:
    """List jobs, newest first."""
    with database.read() as conn:
        return jobs.page(conn, limit, cursor, state=state, model=model)


def events_after(database: Database, job_id: str, after: int, limit: int) -> Page[Event]:
    """List stored events after number `after`; the cursor is the number of the last one."""
    with database.read() as conn:
        jobs.get(conn, job_id)
        found = events.after(conn, job_id, after, limit + 1)
    data = found[:limit]
    return Page(data, str(data[-1].seq) if len(found) > limit else None)


def cancel(database: Database, redis: Redis | None, job_id: str) -> JobRow:
    """Ask a job to stop, and tell those who watch it."""
    with database.write() as conn:
        before = jobs.get(conn, job_id).last_seq
        job = jobs.cancel(conn, job_id)
        added = events.after(conn, job_id, before, job.last_seq - before) if job.last_seq > before else []
    if redis is not None:
        for event in added:
            wire.publish_event(redis, job_id, event.as_dict())
    return job


def _check(conn: Connection, spec: specs.JobSpec) -> list[str]:
    """Check a spec against the corpora it names; give their ids."""
    corpus = _corpus(conn, spec.corpus, "/corpus")
    specs.check_against(spec, len(corpus.columns))
    used = [corpus.id]
    dev_id = getattr(spec.dev, "corpus", None)
    if dev_id is not None:
        dev = _corpus(conn, dev_id, "/dev/corpus")
        used.append(dev.id)
        if len(dev.columns) != len(corpus.columns):
            reason = (
                f"has {len(dev.columns)} columns before the label, the training corpus {len(corpus.columns)}"
            )
            raise Invalid(
                "The dev corpus does not fit the training corpus.",
                [Fault(reason, pointer="/dev/corpus")],
                code="corpora_differ",
            )
    return used


def _corpus(conn: Connection, corpus_id: str, pointer: str) -> CorpusRow:
    try:
        return corpora.get(conn, corpus_id)
    except NotFound as error:
        fault = Fault(error.message, pointer=pointer)
        raise Invalid("The spec names a corpus that does not exist.", [fault], code=error.code) from None


def _start(conn: Connection, reference: str) -> Target:
    """Find the version that a job starts from."""
    try:
        return references.resolve(conn, reference, "/init")
    except NotFound as error:
        fault = Fault(error.message, pointer="/init")
        raise Invalid("The spec names a model that does not exist.", [fault], code=error.code) from None
