"""Live events: one reader of Redis per process, which serves every client that watches a job.

Live events are fast but can be incomplete: a watcher compares sequence numbers and reads missed events from SQL. It
gets RESYNC when its queue overflows, when the reader connects and when Redis is unavailable.
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

from tagsmith.core.service import messages

logger = logging.getLogger(__name__)

#: Jobs write a few events per second, so a watcher this far behind is stuck. Events that its queue drops are in SQL.
QUEUE_LENGTH = 256
#: Maximum wait of one read. Also the delay until a newly watched job joins the read.
BLOCK_MS = 200
#: Maximum number of entries per read.
READ_COUNT = 500
RECONNECT_S = 1.0


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event that is also in SQL."""

    seq: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tick:
    """Progress of a job. It is not stored."""

    progress: Mapping[str, Any]


class Resync:
    """Events may have been missed: read SQL."""


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
        """Queue news. If the queue is full, one RESYNC first replaces everything in it."""
        if self._queue.full():
            while not self._queue.empty():
                self._queue.get_nowait()
            self._queue.put_nowait(RESYNC)
        self._queue.put_nowait(news)

    async def next(self, timeout_s: float) -> News | None:
        """Return the next news, or None after `timeout_s` seconds without news."""
        try:
            return await asyncio.wait_for(self._queue.get(), timeout_s)
        except TimeoutError:
            return None


@dataclass(slots=True)
class _Channel:
    """A watched job: its watches, and the last entry read from its stream (None: not attached yet)."""

    watches: list[Watch] = field(default_factory=list)
    position: str | None = None


class LiveEvents:
    """The reader and the watches it serves. Used on the event loop only."""

    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis
        self._channels: dict[str, _Channel] = {}
        self._watched = asyncio.Event()
        self._closed = False
        self.connected = False

    @contextlib.contextmanager
    def watch(self, job_id: str) -> Iterator[Watch]:
        """Watch a job until the context ends."""
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
        """End every watch, so that open streams do not delay the shutdown."""
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
                self._on_lost_connection(error)
                await asyncio.sleep(RECONNECT_S)

    async def _attach(self, redis: Redis) -> None:
        """Find the newest entries of new channels. Older events are in SQL, because SQL gets each event first."""
        for job_id, channel in list(self._channels.items()):
            if channel.position is None:
                newest: Any = await redis.xrevrange(messages.stream_key(job_id), count=1)
                channel.position = _text(newest[0][0]) if newest else "0-0"
                for watch in channel.watches:
                    watch.put(RESYNC)

    async def _read(self, redis: Redis) -> None:
        channels = {messages.stream_key(job_id): channel for job_id, channel in self._channels.items()}
        streams: dict[Any, Any] = {key: each.position for key, each in channels.items() if each.position}
        if not streams:
            return
        response = await redis.xread(streams, count=READ_COUNT, block=BLOCK_MS)
        self.connected = True
        for key, entries in _pairs(response):
            channel = channels[_text(key)]
            for entry_id, fields in entries:
                channel.position = _text(entry_id)
                news = _news(fields)
                for watch in channel.watches:
                    watch.put(news)

    def _on_lost_connection(self, error: Exception) -> None:
        if self.connected:
            logger.warning(
                "no live events: Redis is unavailable, events come from SQL", extra={"reason": str(error)}
            )
        self.connected = False
        for channel in self._channels.values():
            channel.position = None
            for watch in channel.watches:
                watch.put(RESYNC)


def _news(fields: Mapping[Any, Any]) -> News:
    """Parse one entry of a stream. An invalid entry counts as missed."""
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


def _pairs(response: Any) -> list[tuple[Any, Any]]:
    """Return (stream, entries) pairs from either of the two response shapes of the driver."""
    return list(response.items()) if isinstance(response, dict) else list(response or ())
