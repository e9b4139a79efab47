"""The listening socket of the API.

The supervisor opens it and every API process inherits it. The port stays open while an API process restarts: clients
that connect during the restart wait and are not refused.
"""

import contextlib
import os
import socket
from collections.abc import Iterator

from tagsmith.core.base.errors import Unavailable

#: Connections that the kernel queues while no process accepts, for example during a restart.
BACKLOG = 2048
#: Addresses that mean "all addresses of this machine", and the address that a client uses for each.
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104


@contextlib.contextmanager
def opened(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on `host` and `port`. With port 0 the system chooses a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # The message of the error repeats the address. A name that does not resolve has no errno to look up.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise Unavailable(
            f"Cannot listen on {host} port {port}: {reason}. Choose another --host or --port.",
            code="cannot_listen",
        ) from error
    with listener:
        yield listener


def address(listener: socket.socket) -> str:
    """Return the URL at which a client on this machine reaches the socket."""
    return url(*listener.getsockname()[:2])


def url(host: str, port: int) -> str:
    """Return the URL at which a client on this machine reaches `host` and `port`."""
    shown = WILDCARDS.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
