"""The HTTP server of one API process."""

import socket

import uvicorn
from fastapi import FastAPI

from app.deps import Runtime


class Server(uvicorn.Server):
    """Ends open event streams when it is told to stop; they would otherwise hold up the shutdown."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end the streams, let requests under way finish."""
        app = self.config.app
        runtime = getattr(app.state, "runtime", None) if isinstance(app, FastAPI) else None
        if isinstance(runtime, Runtime):
            runtime.live.close()
        await super().shutdown(sockets)
