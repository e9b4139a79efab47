"""Detection of a dead consumer: it can stop receiving messages, without an error, when its broker comes back."""

import logging
import os
import threading
import time
from collections.abc import Callable

# Longer than the longest pause between two reconnection attempts of Celery.
MAX_IDLE_S = 60.0
#: "Try again later": the supervisor starts a new worker.
EXIT_CODE = os.EX_TEMPFAIL

_log = logging.getLogger(__name__)


class Watchdog:
    """Ends the process when messages wait and the idle worker takes none of them."""

    def __init__(self, busy: threading.Event, end: Callable[[int], object] = os._exit) -> None:
        self._busy = busy
        self._end = end
        self._idle_since: float | None = None

    def check(self, *, messages_wait: bool) -> None:
        """Check the current state; called every few seconds."""
        if not messages_wait or self._busy.is_set():
            self._idle_since = None
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since > MAX_IDLE_S:
            _log.critical("worker ends: messages are waiting and it receives none")
            # Exit at once: the loop that would end the process cleanly is the one that hangs. No job is held.
            self._end(EXIT_CODE)
