"""What is counted in SQL for those who watch the service: the same from whichever process it is asked."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.store import clock, tables
from core.store.states import State

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
class Figures:
    """Where the service stands."""

    jobs: list[JobFigures]
    #: How long the job that waits longest has waited; 0 when none waits.
    oldest_queued_s: float
    #: (model, alias, version)
    aliases: list[tuple[str, str, int]]


def read(conn: Connection) -> Figures:
    """Count."""
    seconds = _seconds_between(conn, _job.c.started_at, _job.c.finished_at)
    ended = sa.func.count(seconds)
    by_state = sa.select(_job.c.kind, _job.c.state, sa.func.count(), ended, sa.func.sum(seconds))
    rows = conn.execute(
        by_state.group_by(_job.c.kind, _job.c.state).order_by(_job.c.kind, _job.c.state)
    ).all()
    oldest = conn.execute(
        sa.select(sa.func.min(_job.c.queued_at)).where(_job.c.state == State.QUEUED.value)
    ).scalar_one()
    waited_s = 0.0 if oldest is None else max(0.0, (clock.now(conn) - oldest).total_seconds())
    alias = tables.alias
    aliases = conn.execute(
        sa.select(alias.c.model, alias.c.alias, alias.c.version).order_by(alias.c.model, alias.c.alias)
    )
    return Figures(
        [JobFigures(kind, state, count, done, float(took or 0)) for kind, state, count, done, took in rows],
        waited_s,
        [(row.model, row.alias, row.version) for row in aliases],
    )


def _seconds_between(conn: Connection, start: sa.Column[Any], end: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if conn.dialect.name == "postgresql":
        return sa.extract("epoch", end - start)
    days = sa.func.julianday(end, type_=sa.Double) - sa.func.julianday(start, type_=sa.Double)
    return days * 86400
