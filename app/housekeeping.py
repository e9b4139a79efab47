"""What an API process tidies up now and then."""

import asyncio
import logging
from collections.abc import Iterator

import anyio.to_thread

from core.errors import TagsmithError
from core.store import answers, audit, policies, retention
from core.store.audit import Deed
from core.store.engine import Database

logger = logging.getLogger(__name__)

#: What is left over does no harm, it only takes room.
EVERY_S = 600.0
#: Versions that one transaction removes: their files are long, and on SQLite nobody else writes meanwhile.
AT_ONCE = 5
#: Who removed a version, when no person did, and how the audit calls it.
ACTOR, METHOD = "retention", "SWEEP"


async def keep_clean(database: Database) -> None:
    """Tidy up until cancelled. Any number of processes may do so."""
    while True:
        await asyncio.sleep(EVERY_S)
        await _do("answers", remove_answers(database))
        await _do("versions", remove_versions(database))


def remove_answers(database: Database) -> Iterator[int]:
    """Remove answers that are no longer given again, telling how many."""
    with database.write() as conn:
        count = answers.clean(conn)
    yield count


def remove_versions(database: Database) -> Iterator[int]:
    """Remove the versions that the policies of their models do not keep, telling how many each transaction did."""
    with database.read() as conn:
        names = policies.retaining(conn)
    for name in names:
        while count := _remove_some(database, name):
            yield count


def _remove_some(database: Database, name: str) -> int:
    with database.write() as conn:
        numbers = retention.apply(conn, name, AT_ONCE)
        for number in numbers:
            path = f"/models/{name}/versions/{number}"
            audit.record(conn, Deed(ACTOR, None, METHOD, path, None, 0, "", None))
    return len(numbers)


async def _do(what: str, steps: Iterator[int]) -> None:
    """Take the steps of a chore, each by itself: a shutdown waits for no more than one."""
    count = 0
    try:
        while (done := await anyio.to_thread.run_sync(next, steps, None)) is not None:
            count += done
        logger.info("tidied up", extra={"what": what, "count": count})
    except TagsmithError as error:
        logger.warning("cannot tidy up now", extra={"what": what, "reason": error.message})
    except Exception:
        # The other chores, and this one the next time, must not suffer for it.
        logger.exception("tidying up failed", extra={"what": what})
