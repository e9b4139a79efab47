"""Live events: one reader of Redis a process, fanned out to every client that watches a job.

What comes this way is fast and may be incomplete; a watcher compares sequence numbers and fetches from SQL
what it missed. A queue that overflows, a reader that connects and a Redis that is away come to the same: RESYNC.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core import wire

logger = logging.getLogger(__name__)

#: Events are some a second, so a watcher this far behind is stuck; SQL has what its queue loses.
QUEUE_LENGTH = 256
#: How long one read waits for news. Also how late a newly watched job joins the read.
BLOCK_MS = 200
#: Entries a read takes at a time.
READ_COUNT = 500
RECONNECT_S = 1.0


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event that is also in SQL."""

    seq: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tick:
    """Progress in passing; it is nowhere else."""

    progress: Mapping[str, Any]


class Resync:
    """Something may have been missed: look into SQL."""


class Closed:
    """The process is shutting down."""


RESYNC: Final = Resync()
CLOSED: Final = Closed()

News = LiveEvent | Tick | Resync | Closed


class Watch:
    """One client's view of one job."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[News] = asyncio.Queue(QUEUE_LENGTH)

    def put(self, news: News) -> None:
        """Queue news; when the queue is full, all of it becomes one RESYNC."""
        if self._queue.full():
            while not self._queue.empty():
                self._queue.get_nowait()
            self._queue.put_nowait(RESYNC)
        self._queue.put_nowait(news)

    async def next(self, timeout_s: float) -> News | None:
        """Give the next news, or None after `timeout_s` of silence."""
        try:
            return await asyncio.wait_for(self._queue.get(), timeout_s)
        except TimeoutError:
            return None


@dataclass(slots=True)
class _Channel:
    """A watched job: by whom, and the last entry read of its stream (None: not attached yet)."""

    watches: list[Watch] = field(default_factory=list)
    position: str | None = None


class LiveEvents:
    """The reader, and the watches it serves. Lives on the event loop."""

    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis
        self._channels: dict[str, _Channel] = {}
        self._watched = asyncio.Event()
        self._closed = False
        self.connected = False

    @contextlib.contextmanager
    def watch(self, job_id: str) -> Iterator[Watch]:
        """Watch a job for as long as the context lasts."""
        watch = Watch()
        channel = self._channels.setdefault(job_id, _Channel())
        channel.watches.append(watch)
        self._watched.set()
        if self._closed:
            watch.put(CLOSED)
        try:
            yield watch
        finally:
            channel.watches.remove(watch)
            if not channel.watches and self._channels.get(job_id) is channel:
                del self._channels[job_id]
            if not self._channels:
                self._watched.clear()

    def close(self) -> None:
        """End every watch, so that open streams do not hold up the shutdown."""
        self._closed = True
        for channel in self._channels.values():
            for watch in channel.watches:
                watch.put(CLOSED)

    async def run(self) -> None:
        """Read until cancelled."""
        if self._redis is None:
            return
        while True:
            await self._watched.wait()
            try:
                await self._attach(self._redis)
                await self._read(self._redis)
            except (RedisError, OSError) as error:
                self._lost(error)
                await asyncio.sleep(RECONNECT_S)

    async def _attach(self, redis: Redis) -> None:
        """Find where the streams of new channels stand. What came before is in SQL: commit goes first."""
        for job_id, channel in list(self._channels.items()):
            if channel.position is None:
                newest: Any = await redis.xrevrange(wire.stream_key(job_id), count=1)
                channel.position = _text(newest[0][0]) if newest else "0-0"
                for watch in channel.watches:
                    watch.put(RESYNC)

    async def _read(self, redis: Redis) -> None:
        channels = {wire.stream_key(job_id): channel for job_id, channel in self._channels.items()}
        streams: dict[Any, Any] = {key: each.position for key, each in channels.items() if each.position}
        if not streams:
            return
        answer = await redis.xread(streams, count=READ_COUNT, block=BLOCK_MS)
        self.connected = True
        for key, entries in _pairs(answer):
            channel = channels[_text(key)]
            for entry_id, fields in entries:
                channel.position = _text(entry_id)
                news = _news(fields)
                for watch in channel.watches:
                    watch.put(news)

    def _lost(self, error: Exception) -> None:
        if self.connected:
            logger.warning("live events are away, following SQL instead", extra={"reason": str(error)})
        self.connected = False
        for channel in self._channels.values():
            channel.position = None
            for watch in channel.watches:
                watch.put(RESYNC)


def _news(fields: Mapping[Any, Any]) -> News:
    """Read one entry of a stream. What cannot be read is treated as missed."""
    values = {_text(key): value for key, value in fields.items()}
    try:
        if "event" in values:
            body = orjson.loads(values["event"])
            return LiveEvent(int(body["seq"]), body)
        return Tick(orjson.loads(values["tick"]))
    except (ValueError, KeyError, TypeError):
        return RESYNC


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _pairs(answer: Any) -> list[tuple[Any, Any]]:
    """Give (stream, entries) whichever of its two answer shapes the driver was set to."""
    return list(answer.items()) if isinstance(answer, dict) else list(answer or ())
