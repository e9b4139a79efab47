"""The data directory: created and checked before anything is written to it."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from tagsmith.core.base.errors import Unavailable

#: Free space below which a start fails. The database, Redis and the caches of an empty service need about a tenth.
MIN_FREE_BYTES = 64 << 20


#: The directory holds texts, models and hashes of keys.
_OWNER_ONLY = 0o700


def keep_files_private() -> None:
    """Let only the owner read what this process writes."""
    os.umask(0o077)


def prepare(path: Path) -> None:
    """Create the data directory, or raise Unavailable that says why it cannot be used and what to do."""
    try:
        path.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        found = path.stat()
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & ~_OWNER_ONLY:
            path.chmod(_OWNER_ONLY)
        with tempfile.TemporaryFile(dir=path):
            pass
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise Unavailable(
            f"The data directory {path} cannot be used: {error.strerror}. Choose another one with --data-dir or "
            "TAGSMITH_DATA_DIR, or change its permissions.",
            code="data_dir_unusable",
        ) from None
    if free < MIN_FREE_BYTES:
        raise Unavailable(
            f"The disk of the data directory {path} has only {free >> 20} MiB left. Free at least "
            f"{MIN_FREE_BYTES >> 20} MiB, or choose another one with --data-dir or TAGSMITH_DATA_DIR.",
            code="disk_full",
        )
