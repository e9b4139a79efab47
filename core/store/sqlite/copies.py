"""Finds a copy of a database file that was made while the file was in use, without its write-ahead log.

Such a copy lacks the newest transactions, or is torn by a checkpoint, and SQLite opens it as if it were whole. While
a process uses a file, the `user_version` in its header is therefore a mark. The last process that closes the file
removes it. A file with a mark and without a log is a copy, unless the mark is its own: it has the inode of its file.
`docs/decisions/0030` explains what else can look like such a copy.
"""

import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path

from tagsmith.core.base.errors import Conflict

#: Longer than any other process takes to remove its mark.
_WAIT_S = 30.0
#: The mark: a bit that is always set, then 15 bits for the inode and 15 bits for the schema.
_MARKED = 1 << 30
_BITS = 15
_MASK = (1 << _BITS) - 1


def opened(path: Path) -> None:
    """Mark a file as in use, or raise Conflict if it is a copy without its write-ahead log."""
    with suppress(sqlite3.Error, FileNotFoundError):  # who uses the file meets the same error, and reports it
        if path.stat().st_size == 0:
            return
        alone = not log_of(path).exists()
        with closing(sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)) as connection:
            mark, schema = _pragma(connection, "user_version"), _pragma(connection, "schema_version")
            own = _MARKED | _inode(path) << _BITS | schema & _MASK
            # SQLite's own ways to copy a file, which miss nothing, give the copy another schema version.
            if alone and mark & _MARKED and mark >> _BITS != own >> _BITS and mark & _MASK == own & _MASK:
                raise _incomplete(path)
            if mark != own:
                connection.execute(f"PRAGMA user_version={own}")
                # The mark must be in the file itself, since that is what would be copied.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def closed(path: Path) -> None:
    """Remove the mark, unless another connection has the file open."""
    with suppress(sqlite3.Error):
        if path.exists():
            _unmark(path, wait_s=0.0)


def accept(path: Path) -> None:
    """Use a copy as it is."""
    if path.exists():
        _unmark(path, wait_s=_WAIT_S)


def log_of(path: Path) -> Path:
    """Return the path of the write-ahead log of a file."""
    return Path(f"{path}-wal")


def _unmark(path: Path, wait_s: float) -> None:
    with closing(sqlite3.connect(path, timeout=wait_s, isolation_level=None)) as connection:
        # Fails if any other connection is open, and keeps others out until this one is closed.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        if _pragma(connection, "user_version") & _MARKED:
            connection.execute("PRAGMA user_version=0")
        connection.execute("COMMIT")


def _inode(path: Path) -> int:
    return zlib.crc32(str(path.stat().st_ino).encode()) & _MASK


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _incomplete(path: Path) -> Conflict:
    return Conflict(
        f"{path} is a copy of a database in use, made without its write-ahead log {log_of(path).name}, so changes are "
        "missing and it may be damaged. Copy both files while no server runs, or use `tagsmith backup` and "
        "`tagsmith restore`. To use this copy as it is, run `tagsmith migrate --accept-copy`.",
        code="incomplete_copy",
    )
