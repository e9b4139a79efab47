"""Statistics for monitoring, read from SQL: every process reports the same numbers."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from tagsmith.core.service.queues import QUEUES
from tagsmith.core.store import clock, lease_clock, tables
from tagsmith.core.store.states import HELD, TERMINAL, State

_job, _total = tables.job, tables.job_total
_ACTIVE = [state.value for state in State if state not in TERMINAL]


@dataclass(frozen=True, slots=True)
class JobStats:
    """The jobs of one kind in one state."""

    kind: str
    state: str
    #: How many are stored.
    count: int
    #: How many ever started and ended, including those that were deleted.
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


def add(conn: Connection, change: JobStats) -> None:
    """Count a job that ended or was deleted, in the same transaction."""
    insert = (postgresql if conn.dialect.name == "postgresql" else sqlite).insert(_total)
    insert = insert.values(**dataclasses.asdict(change))
    sums = {name: _total.c[name] + insert.excluded[name] for name in ("count", "ended", "seconds")}
    conn.execute(insert.on_conflict_do_update(index_elements=["kind", "state"], set_=sums))


def read(conn: Connection) -> ServiceStats:
    """Collect the statistics. The time does not depend on how many jobs have ended."""
    held = sa.select(sa.func.min(_job.c.started_at), sa.func.min(_job.c.lease_until))
    taken_at, until = conn.execute(held.where(_job.c.state.in_([state.value for state in HELD]))).one()
    now = clock.now(conn)
    alias = tables.alias
    aliases = conn.execute(
        sa.select(alias.c.model, alias.c.alias, alias.c.version).order_by(alias.c.model, alias.c.alias)
    )
    return ServiceStats(
        sorted([*_active(conn), *_ended(conn)], key=lambda each: (each.kind, each.state)),
        _queues(conn, now),
        _since(taken_at, now),
        _since(until, lease_clock.now(conn)),
        [(row.model, row.alias, row.version) for row in aliases],
    )


def _active(conn: Connection) -> list[JobStats]:
    query = sa.select(_job.c.kind, _job.c.state, sa.func.count()).where(_job.c.state.in_(_ACTIVE))
    rows = conn.execute(query.group_by(_job.c.kind, _job.c.state))
    return [JobStats(kind, state, count, 0, 0.0) for kind, state, count in rows]


def _ended(conn: Connection) -> list[JobStats]:
    columns = (_total.c.kind, _total.c.state, _total.c.count, _total.c.ended, _total.c.seconds)
    return [JobStats(*row) for row in conn.execute(sa.select(*columns))]


def _queues(conn: Connection, now: datetime) -> list[QueueStats]:
    query = sa.select(_job.c.queue, sa.func.count(), sa.func.min(_job.c.queued_at))
    rows = conn.execute(query.where(_job.c.state == State.QUEUED.value).group_by(_job.c.queue))
    found = {name: QueueStats(name, count, _since(oldest, now)) for name, count, oldest in rows}
    return [found.get(name, QueueStats(name, 0, 0.0)) for name in QUEUES]


def _since(at: datetime | None, now: datetime) -> float:
    return 0.0 if at is None else max(0.0, (now - at).total_seconds())
