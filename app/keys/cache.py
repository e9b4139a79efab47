"""Key cache of an API process. It reads each key from SQL at most once per second."""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import anyio
import anyio.to_thread

from tagsmith.app.keys.failures import FailedKeys
from tagsmith.core.base.errors import TagsmithError, Unavailable
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store import clock, keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import KeyRow

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Half of the two seconds within which a revocation takes effect.
FRESH_S = 1.0
#: How long a cached key stays valid while the database is unavailable. Tagging needs no database.
STALE_S = 300.0
#: Maximum number of cached tokens, including invalid ones. The entries that were read least recently are removed first.
MAX_CACHED = 4096
#: Threads for SQL. They are separate from upload threads, which would delay every request.
THREADS = 4


@dataclass(frozen=True, slots=True)
class _CachedKey:
    key: KeyRow | None
    #: By the monotonic clock, and by the clock of the database.
    read_at: float
    read_time: datetime

    def usable(self) -> KeyRow | None:
        """Return the key if it is neither revoked nor expired."""
        now = self.read_time + timedelta(seconds=time.monotonic() - self.read_at)
        return self.key if self.key is not None and self.key.usable(now) else None


class KeyCache:
    """Finds the key of a token. Use it on the event loop only."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._open = settings.access == ANYONE
        #: Whether requests need a key; None on loopback until SQL is read.
        self._required = False if self._open else None if settings.on_loopback else True
        self._first_read = asyncio.Lock()
        self._cached: OrderedDict[bytes, _CachedKey] = OrderedDict()
        self._reading: dict[bytes, asyncio.Task[_CachedKey]] = {}
        self._recording: set[asyncio.Task[None]] = set()
        self._threads = anyio.CapacityLimiter(THREADS)
        self._failures = FailedKeys()

    async def required(self) -> bool:
        """Whether requests need a key. On loopback, only once a key exists; with open access, never; else always."""
        if self._required is None:
            async with self._first_read:
                if self._required is None:
                    self._required = await self._thread(self._any_created)
        return self._required

    async def follow(self) -> None:
        """Poll SQL for the first key until cancelled, so that requests do not need to."""
        failing = False
        while not (self._required or self._open):
            await asyncio.sleep(FRESH_S)
            try:
                self._required = await self._thread(self._any_created)
                failing = False
            except Exception as error:  # noqa: BLE001  # after any error, the next poll may succeed
                if not failing:
                    logger.warning("cannot read whether keys exist", extra={"reason": str(error)})
                failing = True

    async def key_of(self, token: str, address: str = "") -> KeyRow | None:
        """Return the key of a token, or None if the token is unknown or the key is not usable.

        Raises TooMany, before SQL is asked, if too many tokens from this address were unknown.
        """
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        cached = self._cached.get(digest)
        if cached is None or time.monotonic() - cached.read_at >= FRESH_S:
            # If several requests find the entry stale, only one reads SQL.
            if cached is None or cached.key is None:
                self._failures.check(address)
            task = self._reading.get(digest)
            if task is None:
                task = self._reading[digest] = asyncio.create_task(self._read(digest, token))
                task.add_done_callback(lambda _: self._reading.pop(digest, None))
            cached = await asyncio.shield(task)
            if cached.key is None:
                self._failures.count(address)
        return cached.usable()

    async def _read(self, digest: bytes, token: str) -> _CachedKey:
        try:
            found = await self._thread(lambda: self._find(token))
        except Unavailable:
            cached = self._cached.get(digest)
            if cached is not None and cached.key is not None and time.monotonic() - cached.read_at < STALE_S:
                return cached
            raise
        self._cached[digest] = found
        self._cached.move_to_end(digest)
        if len(self._cached) > MAX_CACHED:
            self._cached.popitem(last=False)
        if found.key is not None and _use_is_due(found.key, found.read_time):
            task = asyncio.create_task(self._record_use(found.key))
            self._recording.add(task)
            task.add_done_callback(self._recording.discard)
        return found

    async def _record_use(self, key: KeyRow) -> None:
        """Record the last use of a key, in the background."""

        def write() -> None:
            with self._database.write() as conn:
                keys.record_use(conn, key.id)

        try:
            await self._thread(write)
        except TagsmithError as error:
            logger.warning(
                "last use of a key not recorded", extra={"key_id": key.id, "reason": error.message}
            )

    def _find(self, token: str) -> _CachedKey:
        with self._database.read() as conn:
            return _CachedKey(keys.of_token(conn, token), time.monotonic(), clock.now(conn))

    def _any_created(self) -> bool:
        with self._database.read() as conn:
            return keys.any_created(conn)

    async def _thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def _use_is_due(key: KeyRow, now: datetime) -> bool:
    return key.last_used_at is None or now - key.last_used_at >= keys.USE_INTERVAL
