"""The HTTP server of one API process."""

import asyncio
import signal
import socket
import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.deps import Runtime

#: How long a process that stops goes on answering on connections that are open. Each answer says that it is the last,
#: so a client with much to ask is gone at once; one that asked nothing in this time is closed in a quiet moment.
DRAIN_S = 1.0
#: What has not ended so long after the signal is ended by the kernel: a supervisor that died kills nobody. Longer than
#: draining and the grace of requests under way together.
LAST_S = 15
POLL_S = 0.01


class Server(uvicorn.Server):
    """Stops without a request lost: connections end after an answer, not before one."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop when a signal says so, and by force if that takes too long."""
        if not self.should_exit:
            signal.alarm(LAST_S)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end event streams, answer what still comes, let requests under way finish."""
        # Other processes accept from the same socket; what waits there is theirs.
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
        while self.server_state.connections and time.monotonic() < end and not self.force_exit:  # noqa: ASYNC110  # they go unheard
            await asyncio.sleep(POLL_S)
