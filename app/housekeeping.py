"""Periodic clean-up in an API process."""

import asyncio
import logging
from collections.abc import Iterator

import anyio.to_thread

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.registry import policies, retention
from tagsmith.core.store import audit, idempotency
from tagsmith.core.store.audit import NewAuditEntry
from tagsmith.core.store.engine import Database

logger = logging.getLogger(__name__)

#: Leftovers only use disk space, so a long interval is enough.
INTERVAL_S = 600.0
#: Versions removed per transaction. Their files are large, and on SQLite a transaction blocks all other writers.
BATCH_VERSIONS = 5
#: Actor and method of removals in the audit log.
ACTOR, METHOD = "retention", "SWEEP"


async def run_cleanup(database: Database) -> None:
    """Clean up periodically until cancelled. Several processes can run this at the same time."""
    while True:
        await asyncio.sleep(INTERVAL_S)
        await _do("responses", remove_responses(database))
        await _do("versions", remove_versions(database))


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


def _remove_some(database: Database, name: str) -> int:
    with database.write() as conn:
        numbers = retention.apply(conn, name, BATCH_VERSIONS)
        for number in numbers:
            entry = NewAuditEntry(
                actor=ACTOR,
                key_id=None,
                method=METHOD,
                path=f"/models/{name}/versions/{number}",
                location=None,
                status=0,
                request_id="",
                note=None,
            )
            audit.record(conn, entry)
    return len(numbers)


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
