"""One API process."""

import contextlib
import gc
import resource
import socket
import sys
from collections.abc import Sequence

import uvicorn
from fastapi import FastAPI

from tagsmith.app import main, server
from tagsmith.app.cli import listen
from tagsmith.app.http.connection import Connection
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.service import data_dir, logs, tracing
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import migrate
from tagsmith.core.store.engine import Database

#: Grace period for running requests after SIGTERM; shorter than the supervisor's time limit.
GRACE_S = 10
#: How long a thread waits for the GIL while the event loop is busy. A thread that runs SQL waits for it dozens of times
#: per request. Python's default is 5 ms for each wait.
SWITCH_S = 0.0005
#: Thresholds of the garbage collector. A request of 1,000 sentences creates 23,000 lists. With the default thresholds,
#: the collector scans all of them several times, and every second scan covers all objects of the process. The second
#: threshold bounds a scan of new objects to half a million: one of all lists of a few large requests takes 0.2 s, in
#: which nothing else runs. The third makes scans of the whole process as rare as possible for the same reason.
COLLECT = (50_000, 10, 1_000)


def serve(settings: Settings, descriptor: int | None) -> int:
    """Serve on the inherited socket `descriptor`, or on a new socket for the configured host and port."""
    data_dir.keep_files_private()
    data_dir.prepare(settings.data_dir)
    _refuse_newer_schema(settings)
    tune_interpreter()
    logs.configure(settings.logging_level)
    if descriptor is not None:
        with socket.socket(fileno=descriptor) as listener:
            _serve_on(listener, settings)
    else:
        with listen.opened(settings.host, settings.port) as listener:
            _serve_on(listener, settings)
    return 0


def _refuse_newer_schema(settings: Settings) -> None:
    """Raise SchemaTooNew rather than start a process that can never serve. The database may be away."""
    database = Database(settings.database_url)
    try:
        with contextlib.suppress(Unavailable):
            migrate.at_head(database)
    finally:
        database.dispose()


def tune_interpreter() -> None:
    """Tune the interpreter and its limits for API processes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each connection is an open file. The usual limit of 1,024 is meant for programs that use select().
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*COLLECT)


def _serve_on(listener: socket.socket, settings: Settings) -> None:
    app = main.create_app(settings, tracing.started("tagsmith-api"))
    server_of(app, settings.proxies, start_reading=True).run(sockets=[listener])


def server_of(
    app: FastAPI, trusted_proxies: Sequence[str] = (), *, start_reading: bool = False
) -> server.Server:
    """Return the server that an API process runs for `app`."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,  # the application writes its own log, with request ids
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        backlog=listen.BACKLOG,
        http=Connection,
        # The address of a caller counts for its limits, so only configured proxies may state one.
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
    )
    return server.Server(config, start_reading=start_reading)
