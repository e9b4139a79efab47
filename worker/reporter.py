"""What a running job says: events to SQL for good and then to Redis, ticks to Redis only."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from redis import Redis
from sqlalchemy.engine import Connection

from core import wire
from core.errors import Unavailable
from core.store import events, jobs
from core.store.engine import Database
from worker.context import Context, Note, Report
from worker.lease import Lease

# Passes over a small corpus take milliseconds: their events are written together, four times a second.
FLUSH_S = 0.25
# What an eye can follow.
TICK_S = 0.2
# While Redis is away each try may cost a timeout; training should not pay that at every tick.
REDIS_PAUSE_S = 2.0


#: Number of a run and of a pass in it. Both are made in one order, so that places can be compared.
Place = tuple[int, int]


def place_of(progress: Mapping[str, Any]) -> Place:
    """Where in a job a progress stands; a job of one run does not number it."""
    run = progress.get("run") or {}
    return int(run.get("number", 0)), int(progress.get("pass", 0))


def publish_since(db: Database, redis: Redis, job_id: str, seq: int) -> int | None:
    """Tell followers about the events after `seq`. Gives the number of the last, None when Redis was away."""
    with db.read() as conn:
        missed = events.after(conn, job_id, seq, wire.STREAM_LENGTH)
    if not missed:
        return seq
    told = wire.publish_events(redis, job_id, [event.as_dict() for event in missed])
    return missed[-1].seq if told else None


class Reporter:
    """The voice of one claim of one job."""

    def __init__(
        self, context: Context, lease: Lease, last_seq: int, told: Mapping[str, Place] | None = None
    ) -> None:
        self._context = context
        self._lease = lease
        self._drafts: list[events.Draft] = []
        self._progress: dict[str, Any] | None = None
        self._flushed_at = self._ticked_at = self._redis_failed_at = float("-inf")
        #: Number of the newest event that followers were told about.
        self._published = last_seq
        #: The last pass and the last run that have an event, of this claim or an earlier one. Training is repeatable:
        #: a pass that is made again, because it came after the checkpoint, says nothing new.
        self._told = dict(told or {})

    def report(self, report: Report) -> None:
        """Take one report. Raises LeaseLost when the job is no longer this worker's."""
        self._progress = report.as_dict()
        self._lease.note(self._progress)
        if report.event == "message":
            self._draft("message", report.message, self._progress)
        elif report.event is not None and place_of(self._progress) > self._told.get(report.event, (0, 0)):
            self._told[report.event] = place_of(self._progress)
            self._draft(report.event, report.message, self._progress)
        if self._drafts and time.monotonic() - self._flushed_at >= FLUSH_S:
            self._try_flush()
        elif time.monotonic() - self._ticked_at >= TICK_S and self._redis_may_answer():
            self._ticked_at = time.monotonic()
            self._heard(wire.publish_tick(self._context.redis, self._lease.job_id, self._progress))

    def note(self, note: Note) -> None:
        """Take a line that is no progress."""
        self._draft("message", note.message, {}, note.level)

    def flush(self) -> None:
        """Write what is pending. Raises Unavailable when the database is away; nothing is forgotten then."""
        if self._drafts:
            with self._context.db.write() as conn:
                self.write(conn)
        self.written()

    def write(self, conn: Connection, *more: events.Draft) -> None:
        """Store what is pending, and `more`, in a transaction that is undone when the job is no longer ours.

        When it has been committed, call `written`.
        """
        lease, lease_s = self._lease, self._context.settings.lease_seconds
        self._flushed_at = time.monotonic()
        beat = jobs.heartbeat(conn, lease.job_id, lease.owner, lease_s, self._progress, lease.worked_seconds)
        if beat.lost:
            raise jobs.LeaseLost(f"the lease of {lease.job_id} has passed on")
        events.append(conn, lease.job_id, [*self._drafts, *more])

    def written(self) -> None:
        """Forget what `write` has stored."""
        self._flushed_at = time.monotonic()
        self._drafts = []

    def publish(self) -> None:
        """Tell followers what SQL has and they were not told."""
        try:
            known = publish_since(self._context.db, self._context.redis, self._lease.job_id, self._published)
        except Unavailable:
            return
        self._heard(known is not None)
        self._published = self._published if known is None else known

    def _draft(self, kind: str, message: str, data: Mapping[str, Any], level: str = "info") -> None:
        self._drafts.append(events.Draft(kind, message, data, level, at=datetime.now(UTC)))

    def _try_flush(self) -> None:
        try:
            self.flush()
        except Unavailable:
            return
        if self._redis_may_answer():
            self.publish()

    def _redis_may_answer(self) -> bool:
        return time.monotonic() - self._redis_failed_at >= REDIS_PAUSE_S

    def _heard(self, answered: bool) -> None:
        if not answered:
            self._redis_failed_at = time.monotonic()
