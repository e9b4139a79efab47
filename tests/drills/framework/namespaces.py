"""Networks of their own with links that can be cut, and a small disk that nobody else sees. All this needs root."""

import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_NEW_MOUNTS, _NEW_NETWORK = 0x00020000, 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Network:
    """A thread in a network of its own, as are the processes that it starts. They live until `close` at most."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.run(lambda: _unshare(_NEW_NETWORK))
        self.tid: int = self.run(_libc.gettid)
        self.command("ip", "link", "set", "dev", "lo", "up")

    def run(self, call: Callable[[], T]) -> T:
        """Call a function in the thread, and return what it returns."""
        return self._thread.submit(call).result()

    def command(self, *arguments: str) -> None:
        """Run a command in the network."""
        self.run(lambda: subprocess.run(arguments, check=True, capture_output=True))

    def listening(self, address: tuple[str, int]) -> socket.socket:
        """Listen on an address of the network."""

        return self.run(lambda: socket.create_server(address, backlog=64))

    def connected(self, address: tuple[str, int]) -> socket.socket:
        """Connect to an address of the network."""
        made = self.run(lambda: socket.create_connection(address, timeout=5))
        made.settimeout(None)
        return made

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def are_permitted() -> bool:
    """Whether this process may make namespaces."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "mount"))):
        return False
    done = subprocess.run(["unshare", "--net", "--mount", "ip", "link"], capture_output=True, check=False)
    return done.returncode == 0


def link(one: Network, other: Network, name: str, addresses: tuple[str, str]) -> None:
    """Connect two networks by a cable; its ends are called `name` in `one` and `up` in `other`."""
    one.command(
        "ip", "link", "add", "name", name, "type", "veth", "peer", "name", "up", "netns", str(other.tid)
    )
    for end, interface, address in ((one, name, addresses[0]), (other, "up", addresses[1])):
        end.command("ip", "address", "add", f"{address}/30", "dev", interface)
        end.command("ip", "link", "set", "dev", interface, "up")


_mounts_are_private = False


def mount_small_disk(path: Path, size_bytes: int) -> None:
    """Mount an empty disk. Only this thread, and what it starts from now on, sees it; it vanishes with them."""
    global _mounts_are_private  # noqa: PLW0603  # a property of the process
    if not _mounts_are_private:
        _unshare(_NEW_MOUNTS)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        _mounts_are_private = True
    path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "drill", str(path)], check=True)


def unmount(path: Path) -> None:
    """Remove a disk."""
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def _unshare(flags: int) -> None:
    if _libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
