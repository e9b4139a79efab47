"""What can be done with jobs."""

from collections.abc import Callable, Iterator
from typing import Any

from redis import Redis
from sqlalchemy.engine import Connection

from app.deps import Caller
from app.jobs import sizes
from app.jobs.sender import JobSender
from core import specs, wire
from core.corpus import formats
from core.errors import Conflict, Fault, Invalid, NotFound, Unavailable
from core.experiments import folds
from core.experiments.plot import Curve, svg_of
from core.experiments.table import TABULATED, csv_of
from core.features.matching import check_kind
from core.settings import Settings
from core.specs_base import pointer
from core.store import blobs, control, corpora, events, jobs, lexicons, models, promotion, references
from core.store.corpora import CorpusRow
from core.store.engine import Database
from core.store.events import Event
from core.store.jobs import JobRow, Origin
from core.store.paging import Page
from core.store.references import Target
from core.store.states import State

#: Kinds of jobs whose result has learning curves.
PLOTTED = frozenset({"train", "compare"})


def create(
    database: Database,
    sender: JobSender,
    spec: specs.JobSpec,
    caller: Caller,
    *,
    settings: Settings,
    retry_of: str | None = None,
) -> JobRow:
    """Store a job whose spec fits its corpora and the limits, then tell the workers."""
    with database.write() as conn:
        _check_room(conn, settings.max_queued_jobs)
        used = _check(conn, spec)
        _check_promotion(conn, spec)
        corpus = corpora.get(conn, spec.corpus)
        sizes.check_memory(spec, corpus, settings.job_memory)
        held = _lexicons(conn, spec)
        # From now on the job means these versions, wherever aliases move before it runs.
        spec, versions = _fixed(conn, spec)
        job = jobs.create(
            conn,
            kind=spec.kind,
            spec=spec.model_dump(mode="json"),
            uses=jobs.Uses(used, [(version.model, version.version) for version in versions], held),
            model=_model(spec, versions),
            origin=Origin(caller.request_id, caller.traceparent, retry_of),
            queue=sizes.queue_of(spec, corpus),
        )
        caller.record(conn, location=location(job))
    sender.send(database, job)
    return job


def location(job: JobRow) -> str:
    """Where a job is found."""
    return f"/jobs/{job.id}"


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


def cancel(database: Database, redis: Redis | None, job_id: str, caller: Caller) -> JobRow:
    """Ask a job to stop, and tell those who watch it."""
    return _ask(database, redis, job_id, caller, control.cancel)


def pause(database: Database, redis: Redis | None, job_id: str, caller: Caller) -> JobRow:
    """Ask a job to stand still, and tell those who watch it."""
    return _ask(database, redis, job_id, caller, control.pause)


def resume(database: Database, redis: Redis | None, sender: JobSender, job_id: str, caller: Caller) -> JobRow:
    """Let a job go on, and tell those who watch it and the workers."""
    job = _ask(database, redis, job_id, caller, control.resume)
    if job.state is State.QUEUED:
        sender.send(database, job)
    return job


def spec_to_retry(database: Database, job_id: str) -> specs.JobSpec:
    """Give what a job that failed or was cancelled was to do."""
    with database.read() as conn:
        return specs.parse_job(control.retryable(conn, job_id).spec)


def _ask(
    database: Database,
    redis: Redis | None,
    job_id: str,
    caller: Caller,
    wish: Callable[[Connection, str], JobRow],
) -> JobRow:
    with database.write() as conn:
        before = jobs.get(conn, job_id).last_seq
        job = wish(conn, job_id)
        caller.record(conn)
        added = events.after(conn, job_id, before, job.last_seq - before) if job.last_seq > before else []
    if redis is not None:
        for event in added:
            wire.publish_event(redis, job_id, event.as_dict())
    return job


def table(database: Database, job_id: str) -> str:
    """Give the table of a job as CSV."""
    job = get(database, job_id)
    if job.kind not in TABULATED:
        raise Conflict(f"a {job.kind} job has no table", code="no_table")
    return csv_of(job.kind, _result(job))


def plot(database: Database, job_id: str) -> str:
    """Draw the learning curves of a job as SVG."""
    job = get(database, job_id)
    if job.kind not in PLOTTED:
        raise Conflict(f"a {job.kind} job has no curves", code="no_plot")
    result = _result(job)
    if job.kind == "train":
        curves = [Curve(f"{result['model']}:{result['version']}", result["curve"])]
        return svg_of(curves, "score on dev, %")
    curves = [Curve(each["name"], each["points"]) for each in result["curves"]]
    return svg_of(curves, "F1 on dev, %" if result["score"] == "f1" else "accuracy on dev, %")


def output(database: Database, job_id: str) -> tuple[JobRow, dict[str, Any], Iterator[bytes]]:
    """Give what a job wrote, with no transaction open while a slow client reads."""
    job = get(database, job_id)
    if job.kind != "tag":
        raise Conflict(f"a {job.kind} job has no output", code="no_output")
    return job, _result(job), blobs.stream(database, jobs.output_id(job_id))


def _result(job: JobRow) -> dict[str, Any]:
    if job.result is None:
        raise Conflict(f"{job.id} has no result: it is {job.state.value}", code="no_result")
    return job.result


def _check_room(conn: Connection, limit: int) -> None:
    if jobs.waiting(conn) >= limit:
        raise Unavailable(f"{limit} jobs wait already; come back when some have ended", code="queue_full")


def _check(conn: Connection, spec: specs.JobSpec) -> list[str]:
    """Check a spec against the corpora it names; give their ids."""
    corpus = _corpus(conn, spec.corpus, "/corpus")
    specs.check_against(spec, corpus.columns)
    if isinstance(spec, specs.TuneSpec):
        folds.check(corpus.sentences, spec.folds)
    if isinstance(spec, specs.TagSpec):
        _check_options(spec, corpus)
    dev = getattr(spec, "dev", None)
    if not isinstance(dev, specs.DevCorpus):
        return [corpus.id]
    scored = _corpus(conn, dev.corpus, "/dev/corpus")
    if len(scored.columns) != len(corpus.columns):
        reason = (
            f"has {len(scored.columns)} columns before the label, the training corpus {len(corpus.columns)}"
        )
        raise Invalid(
            "The dev corpus does not fit the training corpus.",
            [Fault(reason, pointer="/dev/corpus")],
            code="corpora_differ",
        )
    return [corpus.id, scored.id]


def _check_promotion(conn: Connection, spec: specs.JobSpec) -> None:
    """Refuse a job that is to promote what it trains, and leaves it without the score that the policy asks for."""
    end = specs.promoting(spec)
    if end is None or end.promote is None:
        return
    rules = promotion.rules_for_new(conn, end.model, end.promote)
    dev = getattr(end, "dev", None)
    if rules is None or (dev is not None and rules.corpus in (None, getattr(dev, "corpus", None))):
        return
    wanted = "a dev set" if rules.corpus is None else f"{rules.corpus} as its dev corpus"
    reason = (
        f"the policy of {end.model} lets {end.promote} stand only for versions with a score: train with {wanted}, "
        "or promote when an evaluate job has scored it"
    )
    fault = Fault(reason, pointer="/promote" if end is spec else "/train/promote")
    raise Invalid("The version could not be promoted.", [fault], code="promotion_unscored")


def _check_options(spec: specs.TagSpec, corpus: CorpusRow) -> None:
    try:
        formats.writing_options(corpus.format, corpus.options, spec.format or corpus.format, spec.options)
    except Invalid as error:
        faults = [
            Fault(each.reason, pointer=pointer(("options", each.parameter or ""))) for each in error.faults
        ]
        raise Invalid(error.message, faults, code=error.code) from None


def _lexicons(conn: Connection, spec: specs.JobSpec) -> list[str]:
    """Check that the lexicons a spec names are there and of the kind needed; give their ids."""
    ids = []
    for name, column in specs.lexicon_columns(spec):
        pointer = f"/features/derived/{name}/lexicon"
        try:
            found = lexicons.get(conn, column.lexicon_id or "")
        except NotFound as error:
            fault = Fault(error.message, pointer=pointer)
            raise Invalid("The spec names a lexicon that does not exist.", [fault], code=error.code) from None
        check_kind(column, found.kind, pointer)
        ids.append(found.id)
    return ids


def _corpus(conn: Connection, corpus_id: str, pointer: str) -> CorpusRow:
    try:
        return corpora.get(conn, corpus_id)
    except NotFound as error:
        fault = Fault(error.message, pointer=pointer)
        raise Invalid("The spec names a corpus that does not exist.", [fault], code=error.code) from None


def _fixed(conn: Connection, spec: specs.JobSpec) -> tuple[specs.JobSpec, list[Target]]:
    """The spec with its references to models replaced by the versions they stand for now, and those versions."""
    if isinstance(spec, specs.TrainSpec) and spec.init is not None:
        start = _version(conn, spec.init, "/init")
        return spec.model_copy(update={"init": str(start)}), [start]
    if isinstance(spec, specs.TagSpec):
        used = _version(conn, spec.model, "/model")
        return spec.model_copy(update={"model": str(used)}), [used]
    if not isinstance(spec, specs.EvaluateSpec):
        return spec, []
    found: list[Target] = []
    for place, reference in enumerate(spec.models):
        target = _version(conn, reference, f"/models/{place}")
        if target in found:
            fault = Fault(f"{reference} is {target}, which is named already", pointer=f"/models/{place}")
            raise Invalid("The spec names a version twice.", [fault], code="same_version")
        found.append(target)
    return spec.model_copy(update={"models": [str(target) for target in found]}), found


def _version(conn: Connection, reference: str, pointer: str) -> Target:
    """Find the version that a reference in a spec stands for."""
    try:
        target = references.resolve(conn, reference, pointer)
        # From here on no sweep can take it away.
        models.hold(conn, target.model, target.version)
    except NotFound as error:
        fault = Fault(error.message, pointer=pointer)
        raise Invalid("The spec names a model that does not exist.", [fault], code=error.code) from None
    return target


def _model(spec: specs.JobSpec, versions: list[Target]) -> str | None:
    """The model that a job is listed under: the one it trains, or the one whose versions it evaluates."""
    if isinstance(spec, specs.TrainSpec):
        return spec.model
    if isinstance(spec, specs.TuneSpec):
        return None if spec.train is None else spec.train.model
    names = {version.model for version in versions}
    return names.pop() if len(names) == 1 else None
