"""Downloads: a file that appears only when it is complete."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO


@contextmanager
def part_file(to: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which becomes `to` at the end of the block, and vanishes if the block fails."""
    target = Path(to)
    descriptor, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        Path(part).chmod(0o666 & ~mask)  # as `open` would have made it
        Path(part).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(part).unlink()
        raise
