"""The events of a job as server-sent events: first the stored ones, then the live ones.

FastAPI formats the frames. Its generator routes are not used here, for two reasons. The same route also lists events as
JSON and returns 204 when no event is left. The framework would also run two more tasks per stream for its keep-alive.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import anyio.to_thread
import orjson
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event

from tagsmith.app.jobs.live import Closed, LiveEvent, LiveEvents, Tick
from tagsmith.core.base.errors import NotFound, TagsmithError, Unavailable
from tagsmith.core.jobs import events, jobs
from tagsmith.core.jobs.events import Event
from tagsmith.core.jobs.jobs import JobRow
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import TERMINAL

MEDIA_TYPE = EventSourceResponse.media_type

#: Caches must not store events, and proxies must not buffer them.
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

#: Interval of keep-alive comments. Proxies close connections that are idle for too long.
PING_S = 15.0
#: Interval of SQL queries while Redis is unavailable, and while it is available (a worker may not reach it).
POLL_S = 1.0
IDLE_POLL_S = 5.0
#: Time until clients reconnect after a lost connection.
RETRY_MS = 3000
#: Events per query.
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
        """Yield the frames to send."""
        yield format_sse_event(retry=RETRY_MS)
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
                    yield KEEPALIVE_COMMENT
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
        """Yield the stored events after the last one sent, then the stored progress if it has changed."""
        more = True
        while more and not self._ended:
            try:
                job, found = await anyio.to_thread.run_sync(self._read)
            except Unavailable:
                # Keep the stream open during a database outage: a new connection would have the same problem.
                await asyncio.sleep(POLL_S)
                return
            except NotFound:
                # Deleted meanwhile. A client that reconnects gets 404.
                self._ended = True
                return
            for event in found:
                yield await self._event(event.seq, event.as_dict())
            more = len(found) == BATCH
            if job.ended and not more:
                self._ended = True  # also if its events were deleted
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
            # The client gets the last event even if the callback fails.
            with contextlib.suppress(TagsmithError):
                await self._on_end()
        return format_sse_event(id=str(seq), event=body["type"], data_str=orjson.dumps(body).decode())


def _tick(progress: Mapping[str, Any]) -> bytes:
    # Without an id: a client that resumes must not skip stored events because it saw a tick.
    return format_sse_event(event="progress", data_str=orjson.dumps(progress).decode())
