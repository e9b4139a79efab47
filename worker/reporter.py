"""The output of a running job: events are stored in SQL and then published to Redis; ticks go to Redis only."""

import time
from collections.abc import Mapping
from typing import Any

from redis import Redis
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import events, leases
from tagsmith.core.jobs.runner_interface import JobReport, Note
from tagsmith.core.service import messages
from tagsmith.core.store.engine import Database
from tagsmith.worker.context import Context
from tagsmith.worker.lease import Lease

# Passes over a small corpus take milliseconds, so their events are written in batches, four times per second.
FLUSH_INTERVAL_S = 0.25
# About as fast as a person can follow.
TICK_INTERVAL_S = 0.2
# While Redis is unavailable each attempt can cost a timeout. Training must not wait for that at every tick.
REDIS_PAUSE_S = 2.0


#: The number of a run and the number of a pass in it. Later positions compare as greater.
Position = tuple[int, int]


def position_of(progress: Mapping[str, Any]) -> Position:
    """Return the position of a progress report in its job. A job with a single run does not number it."""
    run = progress.get("run") or {}
    return int(run.get("number", 0)), int(progress.get("pass", 0))


def publish_since(db: Database, redis: Redis, job_id: str, seq: int) -> int | None:
    """Publish the events after `seq`. Return the number of the last one, or None when Redis is unavailable."""
    with db.read() as conn:
        missed = events.after(conn, job_id, seq, messages.STREAM_LENGTH)
    if not missed:
        return seq
    published = messages.publish_events(redis, job_id, [event.as_dict() for event in missed])
    return missed[-1].seq if published else None


class Reporter:
    """Stores and publishes the events and the progress of one claim of one job."""

    def __init__(
        self, context: Context, lease: Lease, last_seq: int, reported: Mapping[str, Position] | None = None
    ) -> None:
        self._context = context
        self._lease = lease
        self._drafts: list[events.Draft] = []
        self._progress: dict[str, Any] | None = None
        self._waits_for: str | None = None
        self._flushed_at = self._ticked_at = self._redis_failed_at = float("-inf")
        #: Number of the newest published event.
        self._published = last_seq
        #: The last pass and the last run that have an event, of this claim or an earlier one. Training is
        #: deterministic: a pass that is repeated after the checkpoint gets no second event.
        self._reported = dict(reported or {})

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """The last progress that was reported."""
        return self._progress

    def report(self, report: JobReport) -> None:
        """Handle one report. Raises LeaseLost when this worker no longer holds the lease."""
        self._progress = report.as_dict()
        self._lease.note(self._progress)
        if report.event == "message":
            self._draft("message", report.message, self._progress)
        elif report.event is not None and position_of(self._progress) > self._reported.get(
            report.event, (0, 0)
        ):
            self._reported[report.event] = position_of(self._progress)
            self._draft(report.event, report.message, self._progress)
        if self._drafts and time.monotonic() - self._flushed_at >= FLUSH_INTERVAL_S:
            self._try_flush()
        elif time.monotonic() - self._ticked_at >= TICK_INTERVAL_S and self._redis_may_respond():
            self._ticked_at = time.monotonic()
            ok = messages.publish_tick(self._context.redis, self._lease.job_id, self._progress)
            self._record_redis_result(ok=ok)

    def note(self, note: Note) -> None:
        """Handle a message that is not progress."""
        self._draft("message", note.message, {}, note.level)

    def waiting(self, message: str) -> None:
        """Say that the job waits: once as an event, and in its progress as long as this is called."""
        if message != self._waits_for:
            self._waits_for = message
            self._draft("message", message, {}, "warning")
        progress = {**(self._progress or {}), "phase": "waiting"}
        self._lease.note(progress)
        if self._drafts and time.monotonic() - self._flushed_at >= FLUSH_INTERVAL_S:
            self._try_flush()
        if time.monotonic() - self._ticked_at >= TICK_INTERVAL_S and self._redis_may_respond():
            self._ticked_at = time.monotonic()
            self._record_redis_result(
                ok=messages.publish_tick(self._context.redis, self._lease.job_id, progress)
            )

    def flush(self) -> None:
        """Write the pending events. Raises Unavailable when the database is unavailable; the events stay pending."""
        if self._drafts:
            with self._context.db.write() as conn:
                self.write(conn)
        self.clear_written()

    def write(self, conn: Connection, *more: events.Draft) -> None:
        """Store the pending events and `more`.

        Raises LeaseLost if the lease is lost, which rolls the transaction back. Call `clear_written` after the commit.
        """
        lease, lease_s = self._lease, self._context.settings.lease_seconds
        self._flushed_at = time.monotonic()
        beat = leases.heartbeat(
            conn, lease.job_id, lease.owner, lease_s, self._progress, lease.worked_seconds
        )
        if beat.lost:
            raise leases.LeaseLost(f"This worker has lost the lease of {lease.job_id}.")
        events.append(conn, lease.job_id, [*self._drafts, *more])

    def clear_written(self) -> None:
        """Clear the pending events, which `write` has stored."""
        self._flushed_at = time.monotonic()
        self._drafts = []

    def publish(self) -> None:
        """Publish the events that are in SQL and not yet published."""
        try:
            last = publish_since(self._context.db, self._context.redis, self._lease.job_id, self._published)
        except Unavailable:
            return
        self._record_redis_result(ok=last is not None)
        self._published = self._published if last is None else last

    def _draft(self, kind: str, message: str, data: Mapping[str, Any], level: str = "info") -> None:
        self._drafts.append(events.Draft(kind, message, data, level, noted_s=time.monotonic()))

    def _try_flush(self) -> None:
        try:
            self.flush()
        except Unavailable:
            return
        if self._redis_may_respond():
            self.publish()

    def _redis_may_respond(self) -> bool:
        return time.monotonic() - self._redis_failed_at >= REDIS_PAUSE_S

    def _record_redis_result(self, *, ok: bool) -> None:
        if not ok:
            self._redis_failed_at = time.monotonic()
