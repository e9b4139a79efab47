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
    """A file with a name to write to, which becomes `to` at the end of the block, and vanishes if the block fails."""
    target = Path(to)
    part = tempfile.NamedTemporaryFile(prefix=f".{target.name}.", dir=target.parent, delete=False)  # noqa: SIM115
    try:
        with part as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        Path(part.name).chmod(0o666 & ~mask)  # as `open` would have made it
        Path(part.name).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(part.name).unlink()
        raise
