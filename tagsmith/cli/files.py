"""Files that commands write: complete, or not there."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tagsmith.cli.errors import CommandError


def check_target(path: Path, option: str, **inputs: Path | None) -> None:
    """Raise CommandError if no file can have this path, or if it is one of the inputs, which are given by name."""
    if path.is_dir():
        raise CommandError(f"{option} {path} is a folder. Give the name of a file.")
    if not path.absolute().parent.is_dir():
        raise CommandError(f"There is no folder {path.parent}. Create it, or correct {option}.")
    for name, each in inputs.items():
        if each is not None and path.is_file() and each.exists() and path.samefile(each):
            raise CommandError(f"{option} {path} is the {name} file. Give another name.")


def check_model_target(path: Path, option: str, **inputs: Path | None) -> None:
    """Raise CommandError if a model cannot have this path. Only models and empty files are replaced."""
    check_target(path, option, **inputs)
    if not path.is_file() or not path.stat().st_size:
        return
    from tagsmith.core.model.file import MAGIC  # noqa: PLC0415

    with path.open("rb") as file:
        # The last byte is the version of the format.
        if file.read(len(MAGIC))[:-1] != MAGIC[:-1]:
            raise CommandError(f"{option} {path} exists and is not a model file. Give another name.")


@contextmanager
def target_of(path: Path | None, option: str, **inputs: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears when it is complete."""
    if path is None or str(path) == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    from tagsmith.client.files import part_file  # noqa: PLC0415

    check_target(path, option, **inputs)
    with part_file(path) as file:
        yield file
