"""Statistics for monitoring, read from SQL: every process reports the same numbers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.service.queues import QUEUES
from tagsmith.core.store import clock, lease_clock, tables
from tagsmith.core.store.states import HELD, State

_job = tables.job


@dataclass(frozen=True, slots=True)
class JobStats:
    """The jobs of one kind in one state."""

    kind: str
    state: str
    count: int
    #: How many have started and finished.
    ended: int
    #: The sum of their run times.
    seconds: float


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The jobs that wait in one queue."""

    name: str
    jobs: int
    #: The longest wait so far; 0 when none waits.
    oldest_s: float


@dataclass(frozen=True, slots=True)
class ServiceStats:
    """Jobs, queues, leases and aliases at one moment."""

    jobs: list[JobStats]
    #: Every queue, including empty ones.
    queues: list[QueueStats]
    #: Age of the oldest running job; 0 when none runs.
    oldest_lease_s: float
    #: Time since the oldest expired lease expired; 0 when none is expired.
    lease_overdue_s: float
    #: (model, alias, version)
    aliases: list[tuple[str, str, int]]

    @property
    def oldest_queued_s(self) -> float:
        """The longest wait in any queue."""
        return max(queue.oldest_s for queue in self.queues)


def read(conn: Connection) -> ServiceStats:
    """Collect the statistics."""
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
    return ServiceStats(
        [JobStats(kind, state, count, done, float(took or 0)) for kind, state, count, done, took in rows],
        _queues(conn, now),
        _since(taken_at, now),
        _since(until, lease_clock.now(conn)),
        [(row.model, row.alias, row.version) for row in aliases],
    )


def _queues(conn: Connection, now: datetime) -> list[QueueStats]:
    query = sa.select(_job.c.queue, sa.func.count(), sa.func.min(_job.c.queued_at))
    rows = conn.execute(query.where(_job.c.state == State.QUEUED.value).group_by(_job.c.queue))
    found = {name: QueueStats(name, count, _since(oldest, now)) for name, count, oldest in rows}
    return [found.get(name, QueueStats(name, 0, 0.0)) for name in QUEUES]


def _since(at: datetime | None, now: datetime) -> float:
    return 0.0 if at is None else max(0.0, (now - at).total_seconds())


def _seconds_between(conn: Connection, start: sa.Column[Any], end: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if conn.dialect.name == "postgresql":
        return sa.extract("epoch", end - start)
    days = sa.func.julianday(end, type_=sa.Double) - sa.func.julianday(start, type_=sa.Double)
    return days * 86400
