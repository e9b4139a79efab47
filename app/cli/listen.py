"""The listening socket of the API.

The supervisor opens it and every API process inherits it: the port stays taken while an API process is
restarted, and clients that come in between wait instead of being refused.
"""

import contextlib
import os
import socket
from collections.abc import Iterator

from core.errors import Unavailable

#: Connections the kernel holds while no process accepts, as during a restart.
BACKLOG = 2048
#: What stands for "every address of this machine" and is no address to call.
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104


@contextlib.contextmanager
def opened(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on `host` and `port`; port 0 is one of the system's choice."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # The error's own text repeats the address; a name that does not resolve has no number to look up.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise Unavailable(f"cannot listen on {host} port {port}: {reason}", code="cannot_listen") from error
    with listener:
        yield listener


def address(listener: socket.socket) -> str:
    """Give the address at which a client on this machine reaches the socket."""
    return url(*listener.getsockname()[:2])


def url(host: str, port: int) -> str:
    """Give the address at which a client on this machine reaches `host` and `port`."""
    shown = WILDCARDS.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
