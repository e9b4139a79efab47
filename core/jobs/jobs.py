"""Jobs: the row is the source of truth. A message to a worker only means "look at this row".

Every transition is one UPDATE. Its WHERE clause names the allowed source states and, for workers, the lease. Of any
number of concurrent callers at most one succeeds. Each transition stores its `state` event in the same transaction.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import Conflict, NotFound
from tagsmith.core.jobs import checkpoints, events
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

# A crash that the job itself causes happens again. A second attempt distinguishes it from an accident.
MAX_ATTEMPTS = 2
#: People refer to a job by the last characters of its id.
SUFFIX_LENGTH = 6

_job = tables.job
_UNSEEN = ("losses", "suffix")
#: Parts of results that grow with passes, runs or mistakes. The final event omits them.
_LONG_RESULTS = frozenset({"curve", "curves", "table", "confusion", "wrong_sentences"})
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


@dataclass(frozen=True, slots=True)
class Signals:
    """The requests and the lease state that a worker checks while it runs a job."""

    #: A user requested a cancel.
    cancel: bool
    #: The worker no longer holds the lease: all its further results are ignored.
    lost: bool
    #: A user requested a pause.
    pause: bool = False


class LeaseLost(Conflict):
    """The caller no longer holds the lease: another worker has the job, or the job has ended."""

    default_code = "lease_lost"


# -- creating and reading --


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


def get(conn: Connection, job_id: str) -> JobRow:
    """Return one job."""
    row = conn.execute(sa.select(*_COLUMNS).where(_job.c.id == job_id)).one_or_none()
    if row is None:
        raise missing(job_id)
    return _make(row)


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
    """List jobs, newest first; only those of `state` and of `model` when given."""
    query = sa.select(*_COLUMNS)
    if state is not None:
        query = query.where(_job.c.state == state.value)
    if model is not None:
        query = query.where(_job.c.model == model)
    return paging.fetch(conn, query, _KEY, limit, cursor, _make)


# -- the worker that holds the lease --


def claim(
    conn: Connection, job_id: str, owner: str, lease_s: float, *, max_attempts: int = MAX_ATTEMPTS
) -> JobRow | None:
    """Claim a job. Return None when another worker has it or it has ended: the message was a duplicate.

    `owner` must be new for each claim. It identifies this claim among all others (fencing).
    """
    now = clock.now(conn)
    abandoned = sa.and_(
        _job.c.state == State.RUNNING.value, _job.c.lease_until < now, _job.c.losses + 1 < max_attempts
    )
    return move(
        conn,
        Transition.CLAIM,
        sa.and_(_job.c.id == job_id, sa.or_(_job.c.state == State.QUEUED.value, abandoned)),
        {
            "attempt": _job.c.attempt + 1,
            "losses": _job.c.losses + sa.case((_job.c.state == State.RUNNING.value, 1), else_=0),
            "lease_owner": owner,
            "lease_until": now + timedelta(seconds=lease_s),
            "started_at": now,
            "progress": None,
        },
    )


def heartbeat(
    conn: Connection,
    job_id: str,
    owner: str,
    lease_s: float,
    progress: Mapping[str, Any] | None = None,
    worked_s: float | None = None,
) -> Signals:
    """Renew the lease, store progress and time spent if given, and return the signals, in one statement."""
    values: dict[str, Any] = {"lease_until": clock.now(conn) + timedelta(seconds=lease_s)}
    if progress is not None:
        values["progress"] = dict(progress)
    if worked_s is not None:
        values["worked_seconds"] = worked_s
    query = _job.update().where(_held_by(job_id, owner)).values(**values).returning(_job.c.state)
    return _signals(conn.execute(query).one_or_none())


def signals(conn: Connection, job_id: str, owner: str) -> Signals:
    """Return the signals without renewing the lease. This is a read, so it is cheap enough to poll."""
    query = sa.select(_job.c.state).where(_held_by(job_id, owner))
    return _signals(conn.execute(query).one_or_none())


def succeed(
    conn: Connection,
    job_id: str,
    owner: str,
    result: Mapping[str, Any],
    progress: Mapping[str, Any] | None = None,
) -> JobRow:
    """End a job with its result and its last progress. Publish in the same transaction: then the lease guards both."""
    done = {**(progress or {}), "fraction": 1.0, "eta_seconds": 0.0}
    values = {"result": dict(result), "progress": done, "finished_at": clock.now(conn)}
    return _by_owner(conn, Transition.SUCCEED, job_id, owner, values)


def fail(conn: Connection, job_id: str, owner: str, error: Mapping[str, Any]) -> JobRow:
    """End a job with an error, which has at least `code` and `message`."""
    values = {"error": dict(error), "finished_at": clock.now(conn)}
    return _by_owner(conn, Transition.FAIL, job_id, owner, values)


def cancelled(conn: Connection, job_id: str, owner: str) -> JobRow:
    """End a job as cancelled, after its worker saw the cancel request and stopped."""
    return _by_owner(conn, Transition.STOP, job_id, owner, {"finished_at": clock.now(conn)})


def suspended(conn: Connection, job_id: str, owner: str) -> JobRow:
    """Mark a job as paused, after its worker saw the pause request. Its state is in its checkpoint."""
    values = {"finished_at": at_when({State.CANCELLING}, clock.now(conn))}
    return _by_owner(conn, Transition.SUSPEND, job_id, owner, values)


def requeue(conn: Connection, job_id: str, owner: str) -> JobRow:
    """Return a job to the queue because its worker shuts down. This does not count as a lost worker."""
    return _by_owner(conn, Transition.REQUEUE, job_id, owner, _given_back(clock.now(conn)))


# -- senders and reapers, which handle jobs without a worker; user actions are in `control` --


def expired(conn: Connection, now: datetime) -> list[str]:
    """List the jobs whose lease has expired. This is a read, so that reapers check before they lock."""
    return list(conn.scalars(sa.select(_job.c.id).where(_is_expired(now)).order_by(_job.c.lease_until)))


def reap(conn: Connection, now: datetime, max_attempts: int = MAX_ATTEMPTS) -> list[JobRow]:
    """Queue the jobs of lost workers again, or fail them (`worker_lost`) after `max_attempts`.

    Any number of processes may call this at the same time. One of them handles each expired lease.
    """
    moved: list[JobRow] = []
    last_chance = _job.c.losses + 1 >= max_attempts
    lost = {
        "code": "worker_lost",
        "message": f"the worker was lost {max_attempts} times while it ran this job",
    }
    for job_id in expired(conn, now):
        where = sa.and_(_job.c.id == job_id, _is_expired(now))
        given_back = _given_back(now) | {"losses": _job.c.losses + 1}
        ended = {"losses": _job.c.losses + 1, "error": _error_unless_cancelling(lost), "finished_at": now}
        job = move(conn, Transition.RECOVER, sa.and_(where, sa.not_(last_chance)), given_back)
        job = job or move(conn, Transition.GIVE_UP, sa.and_(where, last_chance), ended)
        if job is not None:
            moved.append(job)
    return moved


def unsent(conn: Connection, older_than: datetime, limit: int = 1000) -> list[JobRow]:
    """List queued jobs with no message sent since `older_than`.

    Either the sender died between commit and send, or the broker lost the message, or all workers are busy. In the
    last case the caller still finds the message in the broker.
    """
    since = sa.func.coalesce(_job.c.sent_at, _job.c.queued_at)
    query = sa.select(*_COLUMNS).where(_job.c.state == State.QUEUED.value, since <= older_than)
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
    return job


def _by_owner(
    conn: Connection, transition: Transition, job_id: str, owner: str, values: Mapping[str, Any]
) -> JobRow:
    moved = move(conn, transition, _held_by(job_id, owner), values)
    if moved is not None:
        return moved
    row = conn.execute(sa.select(*_COLUMNS).where(_job.c.id == job_id)).one_or_none()
    if row is None:
        raise LeaseLost(f"the lease of {job_id} has passed on: it was deleted")
    job = _make(row)
    if job.lease_owner == owner:
        raise illegal(transition.value, job)
    raise LeaseLost(f"This worker has lost the lease of {job_id}: it is {job.state.value}.")


def _held_by(job_id: str, owner: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        _job.c.id == job_id, _job.c.lease_owner == owner, _job.c.state.in_([state.value for state in HELD])
    )


def _is_expired(now: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(_job.c.state.in_([state.value for state in HELD]), _job.c.lease_until < now)


def _given_back(now: datetime) -> dict[str, Any]:
    """Return the fields of a job that is queued or paused again, or that has ended if it was being cancelled."""
    finished_at = at_when({State.CANCELLING}, now)
    return {"queued_at": now, "sent_at": None, "progress": None, "finished_at": finished_at}


def at_when(states: AbstractSet[State], at: datetime) -> sa.ColumnElement[Any]:
    """Return an SQL expression: `at` for a job that was in one of `states`, otherwise NULL."""
    was = _job.c.state.in_([state.value for state in states])
    return sa.case((was, sa.literal(at, _job.c.finished_at.type)), else_=sa.null())


def _error_unless_cancelling(error: Mapping[str, Any]) -> sa.ColumnElement[Any]:
    literal = sa.literal(dict(error), _job.c.error.type)
    return sa.case((_job.c.state == State.CANCELLING.value, sa.null()), else_=literal)


def _signals(row: Row[Any] | None) -> Signals:
    if row is None:
        return Signals(cancel=False, lost=True)
    return Signals(
        cancel=row.state == State.CANCELLING.value, lost=False, pause=row.state == State.PAUSING.value
    )


def _state_event(job: JobRow) -> events.Draft:
    data: dict[str, Any] = {"state": job.state.value, "attempt": job.attempt}
    if job.state is State.FAILED and job.error is not None:
        data["error"] = job.error
        return events.Draft("state", f"failed: {job.error['message']}", data, level="error")
    if job.state is State.SUCCEEDED and job.result is not None:
        data["result"] = _short(job.result)
    message = f"running, attempt {job.attempt}" if job.state is State.RUNNING else job.state.value
    if job.retry_of is not None and job.last_seq == 1:
        data["retry_of"] = job.retry_of
        message = f"queued as a retry of {job.retry_of}"
    return events.Draft("state", message, data)


def _short(result: Any) -> Any:
    """Return a result without its long parts."""
    if isinstance(result, list):
        return [_short(each) for each in result]
    if isinstance(result, dict):
        return {name: _short(value) for name, value in result.items() if name not in _LONG_RESULTS}
    return result


def _make(row: Row[Any]) -> JobRow:
    return JobRow(**{**row._asdict(), "state": State(row.state)})
