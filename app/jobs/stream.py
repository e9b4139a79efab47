"""The events of a job as server-sent events: first what is stored, then what happens."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio.to_thread
import orjson

from app.jobs.live import Closed, LiveEvent, LiveEvents, Tick
from core.errors import TagsmithError, Unavailable
from core.store import events, jobs
from core.store.engine import Database
from core.store.events import Event
from core.store.jobs import JobRow
from core.store.states import TERMINAL

MEDIA_TYPE = "text/event-stream"

#: Proxies cut connections that are silent for longer.
PING_S = 15.0
#: How often SQL is asked while Redis is away, and how often while it is there (a worker may not reach it).
POLL_S = 1.0
IDLE_POLL_S = 5.0
#: Clients come back this long after a lost connection.
RETRY_MS = 3000
#: Events a query.
BATCH = 500


class EventStream:
    """One client's stream. Iterate over `frames()`; it ends after the job's terminal event."""

    def __init__(
        self,
        database: Database,
        live: LiveEvents,
        job_id: str,
        after: int,
        *,
        on_end: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._live = live
        self._job_id = job_id
        self._last = after
        self._on_end = on_end
        self._ended = False
        self._progress: Mapping[str, Any] | None = None

    async def frames(self) -> AsyncIterator[bytes]:
        """Give the bytes to send."""
        yield f"retry: {RETRY_MS}\n\n".encode()
        with self._live.watch(self._job_id) as watch:
            async for frame in self._catch_up():
                yield frame
            sent_at = time.monotonic()
            while not self._ended:
                news = await watch.next(IDLE_POLL_S if self._live.connected else POLL_S)
                if isinstance(news, Closed):
                    return
                async for frame in self._frames_of(news):
                    yield frame
                    sent_at = time.monotonic()
                if time.monotonic() - sent_at >= PING_S:
                    yield b": ping\n\n"
                    sent_at = time.monotonic()

    async def _frames_of(self, news: object) -> AsyncIterator[bytes]:
        if isinstance(news, Tick):
            self._progress = news.progress
            yield _tick(news.progress)
        elif isinstance(news, LiveEvent) and news.seq <= self._last:
            return
        elif isinstance(news, LiveEvent) and news.seq == self._last + 1:
            yield await self._event(news.seq, news.body)
        else:  # a gap, a resync or silence
            async for frame in self._catch_up():
                yield frame

    async def _catch_up(self) -> AsyncIterator[bytes]:
        """Send what SQL has beyond the last event sent, and the progress if nothing newer came by."""
        more = True
        while more and not self._ended:
            try:
                job, found = await anyio.to_thread.run_sync(self._read)
            except Unavailable:
                # The stream outlives an outage of the database; a client that came back would meet it too.
                await asyncio.sleep(POLL_S)
                return
            for event in found:
                yield await self._event(event.seq, event.as_dict())
            more = len(found) == BATCH
            if not more and not job.ended and job.progress and job.progress != self._progress:
                self._progress = job.progress
                yield _tick(job.progress)

    def _read(self) -> tuple[JobRow, list[Event]]:
        with self._database.read() as conn:
            return jobs.get(conn, self._job_id), events.after(conn, self._job_id, self._last, BATCH)

    async def _event(self, seq: int, body: Mapping[str, Any]) -> bytes:
        self._last = seq
        if body["type"] == "state" and body["data"].get("state") in TERMINAL:
            self._ended = True
            with contextlib.suppress(
                TagsmithError
            ):  # the end is told, whatever became of what follows from it
                await self._on_end()
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, body["type"].encode(), orjson.dumps(body))


def _tick(progress: Mapping[str, Any]) -> bytes:
    # Without an id: a client that resumes must not skip stored events because it saw a tick.
    return b"event: progress\ndata: %s\n\n" % orjson.dumps(progress)
