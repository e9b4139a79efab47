"""Noticing that this worker no longer hears: a consumer can die in silence when its broker comes back."""

import logging
import os
import threading
import time
from collections.abc import Callable

# Longer than the longest pause Celery makes between two tries to reconnect.
DEAF_S = 60.0
#: "Try again later": whoever started the worker starts a new one.
EXIT_CODE = os.EX_TEMPFAIL

_log = logging.getLogger(__name__)


class Watchdog:
    """Ends the process when messages wait and it takes none though it has nothing else to do."""

    def __init__(self, busy: threading.Event, end: Callable[[int], object] = os._exit) -> None:
        self._busy = busy
        self._end = end
        self._deaf_since: float | None = None

    def look(self, *, messages_wait: bool) -> None:
        """Take note of the present; called every few seconds."""
        if not messages_wait or self._busy.is_set():
            self._deaf_since = None
            return
        now = time.monotonic()
        self._deaf_since = self._deaf_since or now
        if now - self._deaf_since > DEAF_S:
            _log.critical("worker ends: messages wait and it hears none")
            # At once: the loop that would end it in order is the one that hangs, and it holds no job.
            self._end(EXIT_CODE)
