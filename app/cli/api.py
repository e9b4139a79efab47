"""One API process."""

import gc
import socket
import sys

import uvicorn
from fastapi import FastAPI

from app import main, server
from app.cli import listen
from core import logs, tracing
from core.settings import Settings

#: How long requests under way may take to end after SIGTERM; less than the supervisor's deadline.
GRACE_S = 10
#: How long a thread waits for the interpreter while the event loop is busy. A thread that talks to SQL waits dozens of
#: times in one request, by Python's default of 5 ms each time.
SWITCH_S = 0.0005
#: When the collector of cycles looks for any. A request of 1,000 sentences is 23,000 lists; by default it has
#: the collector go over all of them several times, and every other time over everything the process ever made.
COLLECT = (50_000, 20, 100)


def serve(settings: Settings, descriptor: int | None) -> int:
    """Serve on the inherited socket `descriptor`, or on one of the host and port of the settings."""
    tune_interpreter()
    logs.configure(settings.logging_level)
    if descriptor is not None:
        with socket.socket(fileno=descriptor) as listener:
            _serve_on(listener, settings)
    else:
        with listen.opened(settings.host, settings.port) as listener:
            _serve_on(listener, settings)
    return 0


def tune_interpreter() -> None:
    """Set what the interpreter of an API process has otherwise than by default."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)


def _serve_on(listener: socket.socket, settings: Settings) -> None:
    app = main.create_app(settings, tracing.started("tagsmith-api"))
    server_of(app).run(sockets=[listener])


def server_of(app: FastAPI) -> server.Server:
    """The server of an application, as every API process has it."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,  # the application writes its own, with request ids
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        backlog=listen.BACKLOG,
    )
    return server.Server(config)
