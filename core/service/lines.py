"""Writes lines to a stream whose reader may stall, without ever making the caller wait.

A terminal that is stopped (Ctrl-S) or a full pipe blocks a write for as long as it lasts. So a thread writes, and lines
wait for it in a buffer of limited size. Lines that do not fit are dropped and counted.
"""

import atexit
import contextlib
import threading
from collections.abc import Callable
from typing import IO

#: Lines of about ten seconds under full load.
LIMIT_CHARS = 4 << 20
#: Time for which lines without hurry are collected before they are written together.
WAIT_S = 0.05
#: Longest wait for the reader when the process ends.
FLUSH_S = 1.0


class LineWriter:
    """A stream, its buffer and its thread. `notice` makes the text that tells of dropped lines."""

    def __init__(
        self, stream: IO[str], notice: Callable[[int], str] | None = None, *, limit: int = LIMIT_CHARS
    ) -> None:
        #: Lines that found no room, since the start.
        self.dropped = 0
        self._stream, self._notice, self._limit = stream, notice, limit
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._chars = 0
        self._untold = 0
        self._hurry = self._writing = self._closed = False
        self._thread: threading.Thread | None = None

    def write(self, text: str, *, soon: bool = True) -> None:
        """Queue text. It is written at once, or after `WAIT_S` together with others if it need not be `soon`."""
        with self._changed:
            if self._chars + len(text) > self._limit or self._closed:
                self.dropped += 1
                self._untold += 1
                return
            self._waiting.append(text)
            self._chars += len(text)
            if len(self._waiting) == 1 or (soon and not self._hurry):
                self._changed.notify_all()
            self._hurry = self._hurry or soon
            if self._thread is None:
                # A daemon: a blocked write must not keep the process alive.
                self._thread = threading.Thread(target=self._run, name="lines", daemon=True)
                self._thread.start()
                atexit.register(self.flush)

    def flush(self, timeout_s: float = FLUSH_S) -> None:
        """Wait until everything is written, but not for long."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._writing, timeout_s)

    def _run(self) -> None:
        while True:
            text = self._taken()
            with contextlib.suppress(OSError, ValueError):
                self._stream.write(text)
                self._stream.flush()
                text = ""
            with self._changed:
                self._closed = self._closed or bool(text)  # the stream is gone: nothing is written any more
                self._writing = False
                self._changed.notify_all()

    def _taken(self) -> str:
        """Wait for lines, and take all of them."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting))
            self._changed.wait_for(lambda: self._hurry, WAIT_S)
            if self._untold and self._notice is not None:
                self._waiting.append(self._notice(self._untold))
                self._untold = 0
            text = "".join(self._waiting)
            self._waiting, self._chars, self._hurry, self._writing = [], 0, False, True
            return text
