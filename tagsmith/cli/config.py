"""Where the server is, and the key: options, then the environment, then the config file."""

import functools
import os
import stat
import tomllib
from pathlib import Path

from tagsmith.cli.errors import CommandError

DEFAULT_URL = "http://127.0.0.1:8765"
KNOWN = ("url", "key")


def path() -> Path:
    """The config file, in the folder that the XDG base directory specification names."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "tagsmith" / "config.toml"


def chosen_url(given: str | None) -> str:
    """The address of the server."""
    return (given or named_url() or DEFAULT_URL).rstrip("/")


def named_url() -> str | None:
    """The address that the environment or the config file has, if any."""
    return os.environ.get("TAGSMITH_URL") or _config().get("url")


def chosen_key() -> str | None:
    """The key to send, if there is one."""
    return os.environ.get("TAGSMITH_KEY") or _config().get("key")


def _config() -> dict[str, str]:
    return _read(path())


@functools.cache
def _read(file: Path) -> dict[str, str]:
    """Read the config file. It may hold a key, so nobody else may read it."""
    if not file.is_file():
        return {}
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        raise CommandError(f"Others can read {file} (mode {mode:04o}). Run: chmod 600 {file}")
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{file} is not valid TOML: {error}.") from None
    for name, value in values.items():
        if name not in KNOWN or not isinstance(value, str):
            raise CommandError(f"{file}: {name} is not a setting. Known: {', '.join(KNOWN)}, both strings.")
    return values
