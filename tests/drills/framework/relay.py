"""A relay between clients and a server that can be slow, or cut for some of the clients."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

_READ_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class _Link:
    """One client and its connection to the server."""

    client: socket.socket
    server: socket.socket
    pid: int

    def close(self) -> None:
        for each in (self.client, self.server):
            # `shutdown` wakes the thread that reads; `close` alone would not.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Relay:
    """Passes on what connects to `listening`, in threads. Clients on a Unix socket are known by their process id."""

    def __init__(self, listening: socket.socket, connect: Callable[[], socket.socket]) -> None:
        #: How long each message of a client takes on its way to the server.
        self.delay_s = 0.0
        self._listening = listening
        self._connect = connect
        self._cut: frozenset[int] = frozenset()
        self._links: set[_Link] = set()
        self._lock = threading.Lock()
        self.port = listening.getsockname()[1] if listening.family is socket.AF_INET else 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, pids: Collection[int]) -> None:
        """Close the connections of these processes, and refuse new ones."""
        with self._lock:
            self._cut = frozenset(pids)
            lost = [link for link in self._links if link.pid in self._cut]
        for link in lost:
            link.close()

    def heal(self) -> None:
        """Be fast, and open to all."""
        self.delay_s = 0.0
        self.cut(())

    def close(self) -> None:
        """Close everything."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            links = list(self._links)
        for link in links:
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            pid = _peer(client)
            try:
                if pid in self._cut:
                    raise ConnectionRefusedError
                server = self._connect()
            except OSError:
                client.close()
                continue
            link = _Link(client, server, pid)
            with self._lock:
                self._links.add(link)
            threading.Thread(target=self._pump, args=(link, client, server), daemon=True).start()
            threading.Thread(target=self._pump, args=(link, server, client), daemon=True).start()

    def _pump(self, link: _Link, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(_READ_BYTES):
                if self.delay_s and source is link.client:
                    time.sleep(self.delay_s)
                target.sendall(block)
        link.close()
        with self._lock:
            ended = link not in self._links
            self._links.discard(link)
        if ended:  # the other direction has ended before: nobody reads any more
            link.client.close()
            link.server.close()


def _peer(client: socket.socket) -> int:
    """Return the process id at the other end of a Unix socket, else 0."""
    if client.family is not socket.AF_UNIX:
        return 0
    pid, _, _ = _CREDENTIALS.unpack(
        client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return int(pid)
