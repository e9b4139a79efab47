"""Following a job: which stream to open, what its events are, and when to reconnect or to stop."""

import time
from typing import Any

import httpx
from httpx_sse import ServerSentEvent
from pydantic_core import from_json

from tagsmith.client.call import path_of
from tagsmith.client.errors import ApiError
from tagsmith.client.retrying import LOST, REFUSED
from tagsmith.wire import TERMINAL_STATES, JobEvent, JobProgress

#: How long to keep trying to reach a server that is away, and how long to wait between tries.
PATIENCE_S = 60.0
RETRY_S = 0.5
#: The server pings a quiet stream every 15 s, so this much silence means that the connection is lost.
SILENCE_S = 45.0
CONNECT_S = 60.0

PROGRESS = "progress"


class Following:
    """The state of one caller who follows a job across reconnections."""

    def __init__(self, job_id: str, after: int) -> None:
        self._path = path_of("jobs", job_id, "events")
        self._after = after
        self._lost_at: float | None = None
        self.done = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of httpx-sse's `connect_sse`."""
        return {
            "method": "GET",
            "url": self._path,
            "headers": {"Last-Event-ID": str(self._after)},
            "timeout": httpx.Timeout(CONNECT_S, read=SILENCE_S),
        }

    def opened(self, response: httpx.Response) -> bool:
        """Note that the server responded. False if there is no stream, because every event has been seen."""
        self._lost_at = None
        self.done = response.status_code == httpx.codes.NO_CONTENT
        return not self.done

    def take(self, message: ServerSentEvent) -> JobEvent | JobProgress | None:
        """Read a message of the stream; None for a ping."""
        if not message.data:
            return None
        data = from_json(message.data)
        if message.event == PROGRESS:
            return JobProgress(data=data)
        event = JobEvent.model_validate(data)
        self._after = event.seq
        self.done = event.type == "state" and event.data.get("state") in TERMINAL_STATES
        return event

    def lost(self, error: httpx.TransportError | ApiError) -> None:
        """Note that the server cannot be reached; raise if that has lasted too long, or if it refuses for good."""
        if isinstance(error, ApiError) and error.status not in REFUSED | LOST:
            raise error
        self._lost_at = self._lost_at or time.monotonic()
        if time.monotonic() - self._lost_at > PATIENCE_S:
            raise error
