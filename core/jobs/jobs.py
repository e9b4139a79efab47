"""Jobs: the row is the source of truth. A message to a worker only means "look at this row".

Every transition is one UPDATE, made by `move`. Its WHERE clause names the allowed source states and, for workers, the
lease. Of any number of concurrent callers at most one succeeds. Each transition stores its `state` event in the same
transaction. `leases` has what workers and reapers do to a job, `control` what users do to it.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.jobs import checkpoints, events, job_stats
from tagsmith.core.jobs.job_stats import JobStats
from tagsmith.core.registry import models
from tagsmith.core.service import queues
from tagsmith.core.store import clock, corpora, lexicons, paging, tables
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import (
    HELD,
    TERMINAL,
    TRANSITIONS,
    JobAction,
    State,
    Transition,
    allowed_actions,
)

#: People refer to a job by the last characters of its id.
SUFFIX_LENGTH = 6

_job = tables.job
_UNSEEN = ("losses", "suffix")
#: Parts of results that grow with passes or mistakes. Lists omit them; the final event also omits the table.
_CURVES = ("curve", "curves")
_LONG_RESULTS = frozenset({*_CURVES, "confusion", "wrong_sentences"})
#: Characters of a text in a spec, such as templates, that a summary has.
_SUMMARY_TEXT = 500
_COLUMNS = [column for column in _job.c if column.name not in _UNSEEN]
_KEY = paging.SortKey((_job.c.created_at, _job.c.id))


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job. Which fields are set follows from `state`."""

    id: str
    kind: str
    state: State
    model: str | None
    spec: dict[str, Any]
    progress: dict[str, Any] | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    #: How many times a worker has claimed it.
    attempt: int
    #: Number of the newest event.
    last_seq: int
    cancel_requested: bool
    #: The job that this job retries.
    retry_of: str | None
    #: The queue it waits in.
    queue: str
    #: How long workers have held it, summed over all claims.
    worked_seconds: float
    lease_owner: str | None
    lease_until: datetime | None
    request_id: str | None
    #: The span of that request, if it was traced.
    traceparent: str | None
    created_at: datetime
    queued_at: datetime
    #: When a message about it was last sent to the broker; None if none was sent since it was queued.
    sent_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def ended(self) -> bool:
        """Whether it is in a terminal state."""
        return self.state in TERMINAL

    @property
    def allowed_actions(self) -> list[JobAction]:
        """The actions that its state allows."""
        return allowed_actions(self.state)


@dataclass(frozen=True, slots=True)
class Uses:
    """The inputs of a job, which must not be deleted: ids, and versions as (model, number)."""

    corpora: Sequence[str] = ()
    versions: Sequence[tuple[str, int]] = ()
    lexicons: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that created a job, and the job that it retries."""

    request_id: str | None = None
    #: The span of that request (W3C trace context), if it was traced.
    traceparent: str | None = None
    #: The job that the new job retries.
    retry_of: str | None = None


def create(
    conn: Connection,
    *,
    kind: str,
    spec: Mapping[str, Any],
    uses: Uses | None = None,
    model: str | None = None,
    origin: Origin | None = None,
    queue: str = queues.SLOW,
) -> JobRow:
    """Store a queued job. What it uses cannot be deleted until it has ended."""
    uses, origin = uses or Uses(), origin or Origin()
    corpus_ids = corpora.hold(conn, uses.corpora)
    for name, number in uses.versions:
        models.hold(conn, name, number)
    lexicon_ids = lexicons.hold(conn, uses.lexicons)
    now = clock.now(conn)
    job_id = new_id("job")
    values = {
        "id": job_id,
        "suffix": job_id[-SUFFIX_LENGTH:],
        "kind": kind,
        "state": State.QUEUED.value,
        "model": model,
        "spec": dict(spec),
        "attempt": 0,
        "losses": 0,
        "last_seq": 1,
        "cancel_requested": False,
        "request_id": origin.request_id,
        "traceparent": origin.traceparent,
        "retry_of": origin.retry_of,
        "queue": queue,
        "created_at": now,
        "queued_at": now,
    }
    job = _make(conn.execute(_job.insert().values(**values).returning(*_COLUMNS)).one())
    if corpus_ids:
        conn.execute(
            tables.job_corpus.insert(), [{"job_id": job.id, "corpus_id": each} for each in corpus_ids]
        )
    if lexicon_ids:
        conn.execute(
            tables.job_lexicon.insert(), [{"job_id": job.id, "lexicon_id": each} for each in lexicon_ids]
        )
    if uses.versions:
        rows = [{"job_id": job.id, "model": name, "version": number} for name, number in uses.versions]
        conn.execute(tables.job_version.insert(), rows)
    events.store(conn, job.id, 1, [_state_event(job)])
    return job


def output_id(job_id: str) -> str:
    """Return the blob id of the output of a job. Only some kinds have an output."""
    return f"out_{job_id}"


def find(conn: Connection, job_id: str) -> JobRow | None:
    """Return one job, or None if it does not exist."""
    row = conn.execute(sa.select(*_COLUMNS).where(_job.c.id == job_id)).one_or_none()
    return None if row is None else _make(row)


def get(conn: Connection, job_id: str) -> JobRow:
    """Return one job, or raise NotFound."""
    found = find(conn, job_id)
    if found is None:
        raise missing(job_id)
    return found


def missing(job_id: str) -> NotFound:
    """Make the error for a job that does not exist."""
    return NotFound(f"There is no job {job_id}.", code="job_not_found")


def page(
    conn: Connection,
    limit: int,
    cursor: str | None = None,
    *,
    state: State | None = None,
    model: str | None = None,
) -> paging.Page[JobRow]:
    """List summaries of jobs, newest first; only those of `state` and of `model` when given.

    A summary has no curves and other long parts of results, and only the beginning of long texts in specs.
    """
    short = _without(conn, _job.c.result, _CURVES).label("result")
    query = sa.select(*(short if column.name == "result" else column for column in _COLUMNS))
    if state is not None:
        query = query.where(_job.c.state == state.value)
    if model is not None:
        query = query.where(_job.c.model == model)
    return paging.fetch(conn, query, _KEY, limit, cursor, _summary)


def recent_progress(conn: Connection, limit: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return spec and last progress of the newest jobs that succeeded. Their results can be long and are not read."""
    query = sa.select(_job.c.spec, _job.c.progress).where(_job.c.state == State.SUCCEEDED.value)
    rows = conn.execute(query.order_by(_job.c.created_at.desc(), _job.c.id.desc()).limit(limit))
    return [(row.spec, row.progress or {}) for row in rows]


def unsent(conn: Connection, older_than: datetime, limit: int = 1000) -> list[JobRow]:
    """List queued jobs with no message sent since `older_than`, or with a time in the future: the clock was set back.

    Either the sender died between commit and send, or the broker lost the message, or all workers are busy. In the
    last case the caller still finds the message in the broker.
    """
    since = sa.func.coalesce(_job.c.sent_at, _job.c.queued_at)
    due = sa.or_(since <= older_than, since > clock.now(conn))
    query = sa.select(*_COLUMNS).where(_job.c.state == State.QUEUED.value, due)
    return [_make(row) for row in conn.execute(query.order_by(_job.c.queued_at).limit(limit))]


def waiting(conn: Connection) -> int:
    """Return the number of queued jobs."""
    query = sa.select(sa.func.count()).select_from(_job).where(_job.c.state == State.QUEUED.value)
    return int(conn.execute(query).scalar_one())


def mark_sent(conn: Connection, job_id: str) -> None:
    """Record that a message about the job was sent to the broker."""
    still_queued = sa.and_(_job.c.id == job_id, _job.c.state == State.QUEUED.value)
    conn.execute(_job.update().where(still_queued).values(sent_at=clock.now(conn)))


def illegal(verb: str, job: JobRow) -> Conflict:
    """Return the error for an action that the state of the job does not allow."""
    return Conflict(
        f"Cannot {verb} job {job.id}, because it is {job.state.value}.", code="illegal_transition"
    )


# -- the only function that changes a state --


def move(
    conn: Connection, transition: Transition, where: sa.ColumnElement[bool], values: Mapping[str, Any]
) -> JobRow | None:
    """Make one transition of one job and store its event. Return None when `where` or the state does not match."""
    targets = TRANSITIONS[transition]
    target = sa.case(
        *((_job.c.state == source.value, goal.value) for source, goal in targets.items()), else_=_job.c.state
    )
    # No worker holds a job that waits or has ended, so a late heartbeat or result cannot match it.
    released = {} if HELD & set(targets.values()) else {"lease_owner": None, "lease_until": None}
    query = (
        _job.update()
        .where(where, _job.c.state.in_([source.value for source in targets]))
        .values(**values, **released, state=target, last_seq=_job.c.last_seq + 1)
        .returning(*_COLUMNS)
    )
    row = conn.execute(query).one_or_none()
    if row is None:
        return None
    job = _make(row)
    events.store(conn, job.id, job.last_seq, [_state_event(job)])
    if job.ended:
        checkpoints.delete(conn, job.id)
        job_stats.add(conn, _stats_of(job))
    return job


def at_when(states: AbstractSet[State], at: datetime) -> sa.ColumnElement[Any]:
    """Return an SQL expression: `at` for a job that was in one of `states`, otherwise NULL."""
    was = _job.c.state.in_([state.value for state in states])
    return sa.case((was, sa.literal(at, _job.c.finished_at.type)), else_=sa.null())


def _stats_of(job: JobRow) -> JobStats:
    """Return what the end of a job adds to the statistics."""
    if job.started_at is None or job.finished_at is None:
        return JobStats(job.kind, job.state.value, count=1, ended=0, seconds=0.0)
    seconds = max(0.0, (job.finished_at - job.started_at).total_seconds())  # the clock may have been set back
    return JobStats(job.kind, job.state.value, count=1, ended=1, seconds=seconds)


def _state_event(job: JobRow) -> events.Draft:
    data: dict[str, Any] = {"state": job.state.value, "attempt": job.attempt}
    if job.state is State.FAILED and job.error is not None:
        data["error"] = job.error
        return events.Draft("state", f"failed: {job.error['message']}", data, level="error")
    if job.state is State.SUCCEEDED and job.result is not None:
        data["result"] = _short(job.result, _LONG_RESULTS | {"table"})
    message = f"running, attempt {job.attempt}" if job.state is State.RUNNING else job.state.value
    if job.retry_of is not None and job.last_seq == 1:
        data["retry_of"] = job.retry_of
        message = f"queued as a retry of {job.retry_of}"
    return events.Draft("state", message, data)


def _short(result: Any, omitted: AbstractSet[str]) -> Any:
    """Return a result without the parts that are `omitted`."""
    if isinstance(result, list):
        return [_short(each, omitted) for each in result]
    if isinstance(result, dict):
        return {name: _short(value, omitted) for name, value in result.items() if name not in omitted}
    return result


def _without(conn: Connection, column: sa.Column[Any], names: Sequence[str]) -> sa.ColumnElement[Any]:
    """Return a JSON object without some of its members, so that they are not even read."""
    if conn.dialect.name == "postgresql":
        return column.op("-")(sa.cast(list(names), postgresql.ARRAY(sa.Text))).cast(column.type)
    return sa.type_coerce(sa.func.json_remove(column, *(f"$.{name}" for name in names)), column.type)


def _summary(row: Row[Any]) -> JobRow:
    job = _make(row)
    result = None if job.result is None else _short(job.result, _LONG_RESULTS)
    return dataclasses.replace(job, result=result, spec=_cut(job.spec))


def _cut(value: Any) -> Any:
    """Shorten the long texts in a spec."""
    if isinstance(value, str):
        return value if len(value) <= _SUMMARY_TEXT else value[:_SUMMARY_TEXT] + "…"
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return {name: _cut(each) for name, each in value.items()} if isinstance(value, dict) else value


def _make(row: Row[Any]) -> JobRow:
    return JobRow(**{**row._asdict(), "state": State(row.state)})
