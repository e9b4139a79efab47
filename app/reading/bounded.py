"""Calls with limited memory, made in another process.

Reading a file can need many times its size in memory, and nobody knows how much before it is read. A process whose
memory is limited can run out of it without harm to the process that serves.
"""

import logging
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar

import anyio
import anyio.to_thread

from tagsmith.app.reading import messages
from tagsmith.app.reading.messages import BoundedCall, Died, Failed, Outcome, OutOfMemory, Raised, Returned
from tagsmith.core.base.errors import Invalid, TooLarge, Unavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Calls at once. Two, so that a large file does not keep small ones waiting.
CALLS = 2
#: Further calls wait. More than this are minutes of work, and are refused.
MAX_WAITING = 64
_MIB = 1 << 20
#: A call whose process is gone is made once more.
ATTEMPTS = 2
#: How a process ends that uses too much memory: the container has none left, or a C library gets none.
_OUT_OF_MEMORY = (-signal.SIGKILL, -signal.SIGABRT)


class BoundedCalls:
    """Makes calls in a process that forks for each of them. The process starts at the first call."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._calls = anyio.CapacityLimiter(CALLS)
        self._pending = 0
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    async def run(self, function: Callable[..., T], files: Sequence[IO[bytes]], *arguments: Any) -> T:
        """Return `function(files, *arguments)`. The function must be at the top level of a module.

        Raises TooLarge if it needs more memory than allowed.
        """
        if self._pending >= CALLS + MAX_WAITING:
            raise Unavailable("Too many files are being read. Try again later.", code="overloaded")
        call = BoundedCall(function, arguments, self._memory_bytes)
        self._pending += 1
        try:
            return await anyio.to_thread.run_sync(self._call, call, files, limiter=self._calls)
        finally:
            self._pending -= 1

    def start(self) -> None:
        """Start the process, so that the first call need not wait for it."""
        with self._lock:
            self._started()

    def close(self) -> None:
        """End the process. Calls in progress come to their end."""
        with self._lock:
            self._stop()

    def _call(self, call: BoundedCall, files: Sequence[IO[bytes]]) -> Any:
        for _ in range(ATTEMPTS):
            with self._lock:
                control = self._started()
            try:
                outcome = self._exchange(control, call, files)
            except (OSError, EOFError):  # the process has ended, for lack of work or by a signal
                with self._lock:
                    if self._control is control:  # otherwise another call has started a new process
                        self._stop()
                continue
            return self._value(outcome)
        raise Unavailable("The process that reads uploads ended. Try again.", code="reading_interrupted")

    def _exchange(self, control: socket.socket, call: BoundedCall, files: Sequence[IO[bytes]]) -> Outcome:
        mine, theirs = socket.socketpair()
        with mine:
            with theirs, self._lock:
                socket.send_fds(control, [b"\0"], [theirs.fileno(), *(file.fileno() for file in files)])
            messages.send(mine, call)
            outcome: Outcome = messages.receive(mine)
            return outcome

    def _value(self, outcome: Outcome) -> Any:
        match outcome:
            case Returned(value):
                return value
            case Raised(error):
                raise error
            case OutOfMemory():
                raise self._too_large()
            case Failed(trace):
                raise RuntimeError(f"A call in the reading process failed:\n{trace}")
            case Died(exit_code):
                logger.error("a reading process died", extra={"exit_code": exit_code})
                raise self._too_large() if exit_code in _OUT_OF_MEMORY else _unreadable()

    def _started(self) -> socket.socket:
        if self._control is not None:
            return self._control
        mine, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "tagsmith.app.reading.process", str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self._control = mine
        return mine

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()  # it has no state; the processes of calls go on
            self._process.wait()
            self._process = None

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"Reading this takes more than the {self._memory_bytes / _MIB:,.0f} MiB of memory allowed. Split the file, "
            "or raise TAGSMITH_READ_MEMORY_BYTES.",
            code="memory_exceeded",
        )


def _unreadable() -> Invalid:
    return Invalid(
        "The file cannot be read: reading it takes too long, or ended unexpectedly. Split it, and look for the part "
        "that is the cause.",
        code="unreadable",
    )
