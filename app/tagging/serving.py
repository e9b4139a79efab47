"""Which version answers a model reference: an in-memory picture of the registry that follows SQL.

A request asks once and keeps what it got to its end. When the registry changes, the new targets of references
in use are opened and warmed first, and only then the picture is swapped: nobody waits for a model that moved.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core import wire
from core.errors import TagsmithError
from core.model.cache import ModelCache
from core.model.tagger import Tagger
from core.store import blobs, models, references, registry
from core.store.engine import Database
from core.store.references import Target
from core.store.registry import ModelEntry

logger = logging.getLogger(__name__)

#: Half of the two seconds within which every process must follow.
POLL_S = 1.0
RECONNECT_S = 1.0
#: Where the body of a request names its model.
POINTER = "/model"


@dataclass(frozen=True, slots=True)
class Served:
    """A target and its open model: all that a request needs."""

    target: Target
    tagger: Tagger


class Serving:
    """Resolves references. Lives on the event loop; reads SQL and opens files in threads."""

    def __init__(self, database: Database, cache: ModelCache[Tagger]) -> None:
        self._database = database
        self._cache = cache
        self._models: Mapping[str, ModelEntry] = {}
        self._generation: int | None = None
        self._targets: dict[str, Target] = {}  # of the references in use
        self._refreshing = asyncio.Lock()

    def held(self, reference: str) -> Served | None:
        """Give the model if it is known and open: no SQL, no disk, no waiting. Any thread may ask."""
        target = self._targets.get(reference)
        if target is None:
            return None
        tagger = self._cache.peek(target.sha256)
        return None if tagger is None else Served(target, tagger)

    async def resolve(self, reference: str) -> Served:
        """Give the model, opening it if need be."""
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
            target = present  # it moved while we opened the old one
        raise references.unknown(self._models, parsed, POINTER)

    async def tagger_of(self, target: Target) -> Tagger:
        """Give the model of one version, for a look at it: it is not followed from then on."""
        return await anyio.to_thread.run_sync(self._load, target)

    async def refresh(self) -> None:
        """Catch up with SQL if anything changed; what was committed before the call is served after it."""
        async with self._refreshing:
            generation, found = await anyio.to_thread.run_sync(self._read, self._generation)
            if found is None:
                return
            targets: dict[str, Target] = {}
            complete = True
            for reference, old in list(self._targets.items()):
                new = references.find(found, references.parse(reference, POINTER))
                if new is not None and not await self._opened(new):
                    new, complete = old, False
                if new is not None:
                    targets[reference] = new
            self._models, self._targets = found, targets
            # A model that could not be opened is tried again at the next poll.
            self._generation = generation if complete else None

    async def follow(self, nudged: asyncio.Event) -> None:
        """Keep up with SQL until cancelled: at once when nudged, else every `POLL_S`."""
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
            except Exception as error:  # noqa: BLE001  # what is known goes on being served, whatever happens
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

    def _read(self, known: int | None) -> tuple[int, Mapping[str, ModelEntry] | None]:
        with self._database.read() as conn:
            generation = registry.generation(conn)
            return generation, None if generation == known else registry.snapshot(conn)


def open_warm(path: Path, sha256: str) -> Tagger:
    """Open a model file and tag once with it, so that its pages are read and its kernels compiled."""
    tagger = Tagger.open(path, sha256)
    tagger.tag([[["-"] * tagger.columns]])
    return tagger


async def listen(redis: Redis, nudged: asyncio.Event) -> None:
    """Set `nudged` whenever somebody says that the registry changed. Polling covers what is missed here."""
    while True:
        try:
            async with redis.pubsub(ignore_subscribe_messages=True) as channel:
                await channel.subscribe(wire.REGISTRY_CHANNEL)
                nudged.set()  # what was said before we listened
                async for _ in channel.listen():
                    nudged.set()
        except (RedisError, OSError):
            await asyncio.sleep(RECONNECT_S)
