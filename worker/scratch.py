"""Folders for the temporary files of jobs. A worker that is killed leaves its folder, and the next one removes it."""

import contextlib
import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tagsmith-job-"
_LOCK = "lock"
#: A folder without a lock is younger than this only while it is being made.
_UNLOCKED_S = 60.0


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Make a folder, and remove it at the end. While it is in use, its lock is held."""
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (path / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_leftovers() -> int:
    """Remove the folders of workers that are gone, whose locks the system has released; return their number."""
    count = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_left(path):
                shutil.rmtree(path)
                count += 1
    return count


def _is_left(path: Path) -> bool:
    try:
        with (path / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return time.time() - path.stat().st_mtime > _UNLOCKED_S
    return True
