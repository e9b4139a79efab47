"""The HTTP server of one API process."""

import asyncio
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
    """Server that loses no request when it stops: it closes connections after a response, not before one."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop on a signal. Set an alarm that ends the process if the stop takes too long."""
        if not self.should_exit:
            signal.alarm(LAST_S)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, end event streams, drain open connections, and let running requests finish."""
        # Other processes accept from the same socket and take the connections that wait there.
        for server in self.servers:
            server.close()
        app = self.config.app
        runtime = getattr(app.state, "runtime", None) if isinstance(app, FastAPI) else None
        if isinstance(runtime, Runtime):
            runtime.live.close()
            runtime.draining.set()
            await self._drain()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        end = time.monotonic() + DRAIN_S
        # Polling: uvicorn has no event for a closed connection.
        while self.server_state.connections and time.monotonic() < end and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
