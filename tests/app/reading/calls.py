"""Functions that the tests call in a process with limited memory."""

import ctypes
import os
import signal
from collections.abc import Sequence
from typing import IO

import numpy as np

from tagsmith.core.base.errors import Fault, Invalid


def copied(files: Sequence[IO[bytes]], suffix: bytes) -> int:
    files[0].seek(0)
    files[1].write(files[0].read() + suffix)
    files[1].flush()
    return os.getpid()


def takes(files: Sequence[IO[bytes]], size_bytes: int) -> int:
    return int(np.ones(size_bytes, np.uint8).sum())


def takes_strings(files: Sequence[IO[bytes]], count: int) -> int:
    return len([f"string number {i}" for i in range(count)])


def refuses(files: Sequence[IO[bytes]]) -> None:
    raise Invalid("It is wrong.", [Fault("This line.", line=7)], code="wrong")


def fails(files: Sequence[IO[bytes]]) -> None:
    raise KeyError("unexpected")


def ends_by(files: Sequence[IO[bytes]], number: int) -> None:
    if number == signal.SIGSEGV:
        ctypes.string_at(0)
    os.kill(os.getpid(), number)
