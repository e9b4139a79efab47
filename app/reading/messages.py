"""What an API process and its reading process send to each other: one call, one outcome."""

import pickle
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LENGTH = struct.Struct("!Q")
#: Bytes per read of a socket.
_STEP_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class BoundedCall:
    """A function of a module, called with the files of the call and the arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    #: Memory that the call may allocate.
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Returned:
    """The call returned a value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The call raised an error that a user can cause, or an error of the disk."""

    error: Exception


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The call needed more memory than allowed."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The call raised an unexpected error."""

    trace: str


@dataclass(frozen=True, slots=True)
class Died:
    """The process of the call ended without an outcome: by exit code, or by signal if negative."""

    exit_code: int


Outcome = Returned | Raised | OutOfMemory | Failed | Died


def send(channel: socket.socket, message: BoundedCall | Outcome) -> None:
    """Send a message."""
    data = pickle.dumps(message)
    channel.sendall(_LENGTH.pack(len(data)) + data)


def receive(channel: socket.socket) -> Any:
    """Receive a message; raise EOFError if the other side closed the channel."""
    (size,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    return pickle.loads(_exactly(channel, size))  # noqa: S301  # from a process of our own


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = channel.recv(min(_STEP_BYTES, size - len(data)))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
