"""What is counted in SQL for those who watch the service: the same from whichever process it is asked."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.queues import QUEUES
from core.store import clock, tables
from core.store.states import HELD, State

_job = tables.job


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The jobs of one kind in one state."""

    kind: str
    state: str
    count: int
    #: From start to end, of those that have both.
    ended: int
    seconds: float


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The jobs that wait in one queue."""

    name: str
    jobs: int
    #: How long the one that waits longest has waited; 0 when none waits.
    oldest_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Where the service stands."""

    jobs: list[JobFigures]
    #: Every queue, also one in which no job waits.
    queues: list[QueueFigures]
    #: How long a worker has had the job that was taken first of those that run; 0 when none runs.
    oldest_lease_s: float
    #: How long ago a worker should have renewed its lease at the latest; 0 when all are in time.
    lease_overdue_s: float
    #: (model, alias, version)
    aliases: list[tuple[str, str, int]]

    @property
    def oldest_queued_s(self) -> float:
        """How long the job that waits longest, in whichever queue, has waited."""
        return max(queue.oldest_s for queue in self.queues)


def read(conn: Connection) -> Figures:
    """Count."""
    seconds = _seconds_between(conn, _job.c.started_at, _job.c.finished_at)
    ended = sa.func.count(seconds)
    by_state = sa.select(_job.c.kind, _job.c.state, sa.func.count(), ended, sa.func.sum(seconds))
    rows = conn.execute(
        by_state.group_by(_job.c.kind, _job.c.state).order_by(_job.c.kind, _job.c.state)
    ).all()
    held = sa.select(sa.func.min(_job.c.started_at), sa.func.min(_job.c.lease_until))
    taken_at, until = conn.execute(held.where(_job.c.state.in_([state.value for state in HELD]))).one()
    now = clock.now(conn)
    alias = tables.alias
    aliases = conn.execute(
        sa.select(alias.c.model, alias.c.alias, alias.c.version).order_by(alias.c.model, alias.c.alias)
    )
    return Figures(
        [JobFigures(kind, state, count, done, float(took or 0)) for kind, state, count, done, took in rows],
        _queues(conn, now),
        _since(taken_at, now),
        _since(until, now),
        [(row.model, row.alias, row.version) for row in aliases],
    )


def _queues(conn: Connection, now: datetime) -> list[QueueFigures]:
    query = sa.select(_job.c.queue, sa.func.count(), sa.func.min(_job.c.queued_at))
    rows = conn.execute(query.where(_job.c.state == State.QUEUED.value).group_by(_job.c.queue))
    found = {name: QueueFigures(name, count, _since(oldest, now)) for name, count, oldest in rows}
    return [found.get(name, QueueFigures(name, 0, 0.0)) for name in QUEUES]


def _since(at: datetime | None, now: datetime) -> float:
    return 0.0 if at is None else max(0.0, (now - at).total_seconds())


def _seconds_between(conn: Connection, start: sa.Column[Any], end: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if conn.dialect.name == "postgresql":
        return sa.extract("epoch", end - start)
    days = sa.func.julianday(end, type_=sa.Double) - sa.func.julianday(start, type_=sa.Double)
    return days * 86400
