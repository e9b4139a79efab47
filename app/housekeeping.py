"""Periodic clean-up in an API process."""

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import anyio.to_thread
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import NotFound, TagsmithError
from tagsmith.core.jobs import control
from tagsmith.core.jobs import retention as job_retention
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
#: No request takes this long, so its folder is left over.
SPOOL_S = 86_400.0
#: Actor and method of removals in the audit log.
ACTOR, METHOD = "retention", "SWEEP"


async def run_cleanup(database: Database, settings: Settings) -> None:
    """Clean up periodically until cancelled. Several processes can run this at the same time."""
    while True:
        await asyncio.sleep(INTERVAL_S)
        await _do("responses", remove_responses(database))
        await _do("versions", remove_versions(database))
        await _do("jobs", remove_jobs(database, settings.keep_jobs_days))
        await _do("events", remove_events(database, settings.keep_events_days))
        await _do("outputs", remove_outputs(database, settings.keep_outputs_days))
        await _do("checkpoints", cancel_paused(database, settings.keep_checkpoints_days))
        await _do("spool", remove_spool(settings.data_dir / "spool"))
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
            found = job_retention.ended_before(conn, clock.now(conn) - timedelta(days=days), BATCH_JOBS)
            for job_id in found:
                with contextlib.suppress(NotFound):  # another process was faster
                    control.delete(conn, job_id)
                    _record(conn, f"/jobs/{job_id}")
        if not found:
            return
        yield len(found)


def remove_events(database: Database, days: int) -> Iterator[int]:
    """Remove the events of jobs that ended more than `days` ago, unless that is 0; yield the jobs per transaction."""
    return _remove_parts(database, days, job_retention.delete_events)


def remove_outputs(database: Database, days: int) -> Iterator[int]:
    """Remove the outputs of jobs that ended more than `days` ago, unless that is 0; yield the jobs per transaction."""
    return _remove_parts(database, days, job_retention.delete_outputs)


def cancel_paused(database: Database, days: int) -> Iterator[int]:
    """Cancel paused jobs whose checkpoint is older than `days`, which deletes the checkpoint; 0 disables it.

    Yields the number of jobs per transaction.
    """
    while days:
        with database.write() as conn:
            found = job_retention.paused_before(conn, clock.now(conn) - timedelta(days=days), BATCH_JOBS)
            for job_id in found:
                control.cancel(conn, job_id)
                _record(conn, f"/jobs/{job_id}/cancel")
        if not found:
            return
        yield len(found)


def remove_spool(folder: Path) -> Iterator[int]:
    """Remove the folders of requests whose process was killed; yield their number."""
    count = 0
    for path in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # its request has ended, or another process was faster
            if path.is_dir() and time.time() - path.stat().st_mtime > SPOOL_S:
                shutil.rmtree(path, ignore_errors=True)
                count += 1
    yield count


def remove_audit(database: Database, days: int) -> Iterator[int]:
    """Remove entries of the audit that are older than `days`, unless that is 0; yield the number per transaction."""
    return _remove_parts(database, days, audit.remove_before, BATCH_ENTRIES)


def _remove_parts(
    database: Database, days: int, delete: Callable[[Connection, datetime, int], int], batch: int = BATCH_JOBS
) -> Iterator[int]:
    while days:
        with database.write() as conn:
            count = delete(conn, clock.now(conn) - timedelta(days=days), batch)
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
