"""What an API process tidies up now and then."""

import asyncio
import logging

import anyio.to_thread

from core.errors import TagsmithError
from core.store import answers
from core.store.engine import Database

logger = logging.getLogger(__name__)

#: Rows that ran out do no harm, they only take room.
EVERY_S = 600.0


async def keep_clean(database: Database) -> None:
    """Remove answers that are no longer given again, until cancelled. Any number of processes may do so."""

    def clean() -> int:
        with database.write() as conn:
            return answers.clean(conn)

    while True:
        await asyncio.sleep(EVERY_S)
        try:
            removed = await anyio.to_thread.run_sync(clean)
            logger.info("answers removed", extra={"count": removed})
        except TagsmithError as error:
            logger.warning("cannot clean up now", extra={"reason": error.message})
