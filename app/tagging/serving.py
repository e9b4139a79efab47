"""Resolves model references to versions, with an in-memory snapshot of the registry that follows SQL.

A request resolves its reference once and keeps that version until it ends. When the registry changes, the new targets
of references in use are opened and warmed up first. Only then is the snapshot replaced, so no request waits for a model
because an alias moved.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tagsmith.core.base.errors import NotFound, TagsmithError
from tagsmith.core.model.cache import ModelCache
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.registry import generations, models, references
from tagsmith.core.registry.generations import ModelEntry
from tagsmith.core.registry.references import Reference, Target
from tagsmith.core.service import messages
from tagsmith.core.store import blobs
from tagsmith.core.store.engine import Database

logger = logging.getLogger(__name__)

#: Half of the two seconds within which every process must serve a change.
POLL_S = 1.0
RECONNECT_S = 1.0
#: JSON pointer to the model reference in a request body.
POINTER = "/model"


@dataclass(frozen=True, slots=True)
class Served:
    """A target and its open model."""

    target: Target
    tagger: Tagger


class Serving:
    """Resolves references. Use it on the event loop. It reads SQL and opens files in threads."""

    def __init__(self, database: Database, cache: ModelCache[Tagger]) -> None:
        self._database = database
        self._cache = cache
        self._models: Mapping[str, ModelEntry] = {}
        self._generation: int | None = None
        self._targets: dict[str, Target] = {}  # targets of the references in use
        self._refreshing = asyncio.Lock()

    def held(self, reference: str) -> Served | None:
        """Return the model if it is known and open, else None. Uses no SQL or disk and never blocks. Thread-safe."""
        target = self._targets.get(reference)
        if target is None:
            return None
        tagger = self._cache.peek(target.sha256)
        return None if tagger is None else Served(target, tagger)

    async def resolve(self, reference: str) -> Served:
        """Return the model of a reference. Open it if necessary."""
        held = self.held(reference)
        if held is not None:
            return held
        parsed = references.parse(reference, POINTER)
        target = references.find(self._models, parsed)
        if target is None:
            await self.refresh()
            target = references.find(self._models, parsed)
        while target is not None:
            tagger = await anyio.to_thread.run_sync(self._load, target)
            present = references.find(self._models, parsed)
            if present == target:
                self._targets[reference] = target
                return Served(target, tagger)
            target = present  # the reference moved while the old model was being opened
        raise await anyio.to_thread.run_sync(self._unknown, parsed)

    async def tagger_of(self, target: Target) -> Tagger:
        """Return the model of one version, for inspection. It does not become a reference in use."""
        return await anyio.to_thread.run_sync(self._load, target)

    async def open_file(self, reference: str) -> tuple[BinaryIO, str]:
        """Open the file of a model, and return it with its checksum."""
        target = (await self.resolve(reference)).target
        opened = await anyio.to_thread.run_sync(
            self._cache.open_file, target.sha256, lambda: self._chunks(target)
        )
        return opened, target.sha256

    async def refresh(self) -> None:
        """Read changes from SQL. Changes that are committed before the call are served after it."""
        async with self._refreshing:
            generation, found = await anyio.to_thread.run_sync(self._read, self._generation)
            if found is None:
                return
            targets: dict[str, Target] = {}
            complete = True
            for reference, old in list(self._targets.items()):
                # A reference whose model was evicted is idle. It is forgotten, and resolved again by its next request.
                if not self._cache.is_open(old.sha256):
                    continue
                new = references.find(found, references.parse(reference, POINTER))
                if new is not None and new != old and not await self._opened(new):
                    new, complete = old, False
                if new is not None:
                    targets[reference] = new
            self._models, self._targets = found, targets
            # The next poll retries models that could not be opened.
            self._generation = generation if complete else None

    async def follow(self, nudged: asyncio.Event) -> None:
        """Refresh until cancelled: at once when `nudged` is set, else every `POLL_S`."""
        away = False
        while True:
            try:
                async with asyncio.timeout(POLL_S):
                    await nudged.wait()
            except TimeoutError:
                pass
            nudged.clear()
            try:
                await self.refresh()
                away = False
            except Exception as error:  # noqa: BLE001  # after any error, the known models stay in service
                if not away:
                    logger.warning("cannot follow the registry", extra={"reason": str(error)})
                away = True

    async def _opened(self, target: Target) -> bool:
        try:
            await anyio.to_thread.run_sync(self._load, target)
        except (TagsmithError, blobs.CorruptBlobError):
            reference = f"{target.model}:{target.version}"
            logger.exception("model not opened, the old one stays", extra={"model": reference})
            return False
        return True

    def _load(self, target: Target) -> Tagger:
        return self._cache.load(target.sha256, lambda: self._chunks(target))

    def _chunks(self, target: Target) -> Iterator[bytes]:
        with self._database.read() as conn:
            blob_id = models.blob_id(conn, target.model, target.version)
        yield from blobs.stream(self._database, blob_id)

    def _unknown(self, reference: Reference) -> NotFound:
        with self._database.read() as conn:
            return references.unknown(conn, self._models, reference, POINTER)

    def _read(self, known: int | None) -> tuple[int, Mapping[str, ModelEntry] | None]:
        with self._database.read() as conn:
            generation = generations.generation(conn)
            return generation, None if generation == known else generations.snapshot(conn)


def open_warm(path: Path, sha256: str) -> Tagger:
    """Open a model file and tag or parse once with it, to load its pages and compile its kernels."""
    tagger = Tagger.open(path, sha256)
    tagger.tag_probe()
    return tagger


async def listen(redis: Redis, nudged: asyncio.Event) -> None:
    """Set `nudged` on every message that the registry changed. Polling covers missed messages."""
    while True:
        try:
            async with redis.pubsub(ignore_subscribe_messages=True) as channel:
                await channel.subscribe(messages.REGISTRY_CHANNEL)
                nudged.set()  # for messages sent before the subscription
                async for _ in channel.listen():
                    nudged.set()
        except (RedisError, OSError):
            await asyncio.sleep(RECONNECT_S)
