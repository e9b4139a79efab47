"""A full disk is an outage: it becomes `Unavailable` with a sentence that says what to do."""

import errno
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tagsmith.core.base.errors import Unavailable

#: No space, or no more for this user.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskFull(Unavailable):
    """There is no room for a file or for the database."""

    default_code = "disk_full"


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk is full."""
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in _FULL)


def free_bytes(folder: Path) -> int:
    """Return the room on the disk of a folder; of one that is gone, any room."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return sys.maxsize


def full(place: str) -> DiskFull:
    """Build the error for a full disk. `place` completes "The disk of ..."."""
    return DiskFull(f"The disk of {place} is full. Free some space, then try again.")


@contextmanager
def room_in(place: str) -> Iterator[None]:
    """Raise DiskFull for an `OSError` that says that the disk is full."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise full(place) from error
        raise
