"""Periodic clean-up in an API process."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from datetime import timedelta

import anyio.to_thread
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import NotFound, TagsmithError
from tagsmith.core.jobs import control
from tagsmith.core.registry import policies, retention
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import audit, clock, idempotency
from tagsmith.core.store.audit import NewAuditEntry
from tagsmith.core.store.engine import Database

logger = logging.getLogger(__name__)

#: Leftovers only use disk space, so a long interval is enough.
INTERVAL_S = 600.0
#: Versions removed per transaction. Their files are large, and on SQLite a transaction blocks all other writers.
BATCH_VERSIONS = 5
BATCH_JOBS = 20
BATCH_ENTRIES = 1000
#: Actor and method of removals in the audit log.
ACTOR, METHOD = "retention", "SWEEP"


async def run_cleanup(database: Database, settings: Settings) -> None:
    """Clean up periodically until cancelled. Several processes can run this at the same time."""
    while True:
        await asyncio.sleep(INTERVAL_S)
        await _do("responses", remove_responses(database))
        await _do("versions", remove_versions(database))
        await _do("jobs", remove_jobs(database, settings.keep_jobs_days))
        await _do("audit", remove_audit(database, settings.keep_audit_days))


def remove_responses(database: Database) -> Iterator[int]:
    """Remove expired idempotent responses; yield their number."""
    with database.write() as conn:
        count = idempotency.clean(conn)
    yield count


def remove_versions(database: Database) -> Iterator[int]:
    """Remove versions that the retention policies of their models do not keep; yield the number per transaction."""
    with database.read() as conn:
        names = policies.retaining(conn)
    for name in names:
        while count := _remove_some(database, name):
            yield count


def remove_jobs(database: Database, days: int) -> Iterator[int]:
    """Remove jobs that ended more than `days` ago, unless that is 0; yield the number per transaction."""
    while days:
        with database.write() as conn:
            found = control.ended_before(conn, clock.now(conn) - timedelta(days=days), BATCH_JOBS)
            for job_id in found:
                with contextlib.suppress(NotFound):  # another process was faster
                    control.delete(conn, job_id)
                    _record(conn, f"/jobs/{job_id}")
        if not found:
            return
        yield len(found)


def remove_audit(database: Database, days: int) -> Iterator[int]:
    """Remove entries of the audit that are older than `days`, unless that is 0; yield the number per transaction."""
    while days:
        with database.write() as conn:
            count = audit.remove_before(conn, clock.now(conn) - timedelta(days=days), BATCH_ENTRIES)
        if not count:
            return
        yield count


def _remove_some(database: Database, name: str) -> int:
    with database.write() as conn:
        numbers = retention.apply(conn, name, BATCH_VERSIONS)
        for number in numbers:
            _record(conn, f"/models/{name}/versions/{number}")
    return len(numbers)


def _record(conn: Connection, path: str) -> None:
    """Record a removal in the audit."""
    entry = NewAuditEntry(
        actor=ACTOR, key_id=None, method=METHOD, path=path, location=None, status=0, request_id="", note=None
    )
    audit.record(conn, entry)


async def _do(what: str, steps: Iterator[int]) -> None:
    """Run the steps of a task, each as a separate call in a thread. A shutdown waits for at most one step."""
    count = 0
    try:
        while (done := await anyio.to_thread.run_sync(next, steps, None)) is not None:
            count += done
        logger.info("cleaned up", extra={"what": what, "count": count})
    except TagsmithError as error:
        logger.warning("clean-up not possible now", extra={"what": what, "reason": error.message})
    except Exception:
        # The other tasks must continue. This task runs again later.
        logger.exception("clean-up failed", extra={"what": what})
