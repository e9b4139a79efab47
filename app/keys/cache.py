"""Key cache of an API process. It reads each key from SQL at most once per second."""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import anyio
import anyio.to_thread

from tagsmith.core.base.errors import TagsmithError, Unavailable
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store import keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import KeyRow

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Half of the two seconds within which a revocation takes effect.
FRESH_S = 1.0
#: How long a cached key stays valid while the database is unavailable. Tagging needs no database.
STALE_S = 300.0
#: Maximum number of cached tokens, including invalid ones. The entries that were read least recently go first.
REMEMBERED = 4096
#: Threads for SQL. They are separate from upload threads, which would delay every request.
THREADS = 4


@dataclass(frozen=True, slots=True)
class _Known:
    key: KeyRow | None
    at: float


class KeyCache:
    """Finds the key of a token. Use it on the event loop only."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._open = settings.access == ANYONE
        #: Whether keys are in force; None on loopback until SQL is read.
        self._in_force = False if self._open else None if settings.on_loopback else True
        self._looking = asyncio.Lock()
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[KeyRow | None]] = {}
        self._noting: set[asyncio.Task[None]] = set()
        self._threads = anyio.CapacityLimiter(THREADS)

    async def in_force(self) -> bool:
        """Whether requests need a key. On loopback, only once a key exists; with open access, never; else always."""
        if self._in_force is None:
            async with self._looking:
                if self._in_force is None:
                    self._in_force = await self._thread(self._any_made)
        return self._in_force

    async def follow(self) -> None:
        """Poll SQL for the first key until cancelled, so that requests do not need to."""
        away = False
        while not (self._in_force or self._open):
            await asyncio.sleep(FRESH_S)
            try:
                self._in_force = await self._thread(self._any_made)
                away = False
            except Exception as error:  # noqa: BLE001  # after any error, the next poll may succeed
                if not away:
                    logger.warning("cannot see whether there are keys", extra={"reason": str(error)})
                away = True

    async def key_of(self, token: str) -> KeyRow | None:
        """Return the key of a token, or None if the token is unknown or the key is not usable."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = self._known.get(digest)
        if known is None or time.monotonic() - known.at >= FRESH_S:
            # If several requests find the entry stale, only one reads SQL.
            task = self._asking.get(digest)
            if task is None:
                task = self._asking[digest] = asyncio.create_task(self._ask(digest, token))
                task.add_done_callback(lambda _: self._asking.pop(digest, None))
            key = await asyncio.shield(task)
        else:
            key = known.key
        return key if key is not None and key.usable(datetime.now(UTC)) else None

    async def _ask(self, digest: bytes, token: str) -> KeyRow | None:
        try:
            key = await self._thread(lambda: self._find(token))
        except Unavailable:
            known = self._known.get(digest)
            if known is not None and known.key is not None and time.monotonic() - known.at < STALE_S:
                return known.key
            raise
        self._known[digest] = _Known(key, time.monotonic())
        self._known.move_to_end(digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        if key is not None and _unnoted(key):
            task = asyncio.create_task(self._note(key))
            self._noting.add(task)
            task.add_done_callback(self._noting.discard)
        return key

    async def _note(self, key: KeyRow) -> None:
        """Record the last use of a key, in the background."""

        def write() -> None:
            with self._database.write() as conn:
                keys.used(conn, key.id)

        try:
            await self._thread(write)
        except TagsmithError as error:
            logger.warning("last use of a key not noted", extra={"key_id": key.id, "reason": error.message})

    def _find(self, token: str) -> KeyRow | None:
        with self._database.read() as conn:
            return keys.of_token(conn, token)

    def _any_made(self) -> bool:
        with self._database.read() as conn:
            return keys.any_made(conn)

    async def _thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def _unnoted(key: KeyRow) -> bool:
    return key.last_used_at is None or datetime.now(UTC) - key.last_used_at >= keys.USED_EVERY
