"""Files that commands write: complete, or not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tagsmith.cli.errors import CommandError


def check_target(path: Path) -> None:
    """Raise CommandError if no file can have this path."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise CommandError(f"{path} cannot be written: give the name of a file in an existing folder.")


@contextmanager
def complete_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which appears at the end of the block."""
    from tagsmith.client.files import part_file  # noqa: PLC0415

    check_target(path)
    with part_file(path) as file:
        yield file
