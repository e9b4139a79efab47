"""The HTTP server of one API process."""

import asyncio
import math
import signal
import socket
import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tagsmith.app.deps import Runtime

#: How long a stopping process still serves open connections. Each response closes its connection, so the connections of
#: busy clients end at once. Connections that are idle for this time are closed at its end.
DRAIN_S = 1.0
#: Time after the signal when the kernel ends the process (SIGALRM), in case no supervisor is left to kill it.
#: Longer than draining plus the grace period of running requests.
LAST_S = 15
POLL_S = 0.01


class Server(uvicorn.Server):
    """Server that loses no request when it stops: it closes connections after a response, not before one.

    With `start_reading`, the process that reads uploads starts at once, else with the first large upload.
    """

    def __init__(self, config: uvicorn.Config, *, start_reading: bool = False) -> None:
        super().__init__(config)
        self._start_reading = start_reading

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop on a signal. Set an alarm that ends the process if the stop takes too long."""
        if not self.should_exit:
            signal.alarm(LAST_S + math.ceil(self._notice_s()))
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve."""
        await super().startup(sockets)
        runtime = self._runtime()
        if runtime is not None and self._start_reading and not self.should_exit:
            runtime.uploads.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, end event streams, drain open connections, and let running requests finish.

        Before that, tell the proxies: for `drain_seconds`, `/readyz` is 503 and everything else is served as before.
        """
        if (runtime := self._runtime()) is not None:
            runtime.health.stopping = True
            await self._notify_proxies()
        # Other processes accept from the same socket and take the connections that wait there.
        for server in self.servers:
            server.close()
        if runtime is not None:
            runtime.live.close()
            runtime.draining.set()
            await self._drain()
        await super().shutdown(sockets)

    def _runtime(self) -> Runtime | None:
        app = self.config.app
        runtime = getattr(app.state, "runtime", None) if isinstance(app, FastAPI) else None
        return runtime if isinstance(runtime, Runtime) else None

    def _notice_s(self) -> float:
        """How long proxies have to notice that this process stops."""
        runtime = self._runtime()
        return 0.0 if runtime is None else runtime.settings.drain_seconds

    async def _notify_proxies(self) -> None:
        end = time.monotonic() + self._notice_s()
        while time.monotonic() < end and not self.force_exit:  # noqa: ASYNC110  # a second signal sets a flag only
            await asyncio.sleep(POLL_S)

    async def _drain(self) -> None:
        end = time.monotonic() + DRAIN_S
        # Polling: uvicorn has no event for a closed connection.
        while self.server_state.connections and time.monotonic() < end and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
