"""Logs as JSON lines on standard error: one object a line, the same keys from API and workers."""

import asyncio
import contextvars
import json
import logging
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import IO

import orjson

#: What every LogRecord has; anything beyond was given by the caller as `extra` and belongs in the line.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


#: How long lines of requests wait for others, so that they are written together.
WAIT_S = 0.05

#: What belongs in every line that is written on behalf of the present request or job.
_bound: contextvars.ContextVar[Mapping[str, object]] = contextvars.ContextVar(
    "bound", default=MappingProxyType({})
)


def bind(**values: object) -> None:
    """Put these in every further line of this request or job, in place of what was bound before."""
    _bound.set(values)


def bind_also(**values: object) -> None:
    """Put these in every further line as well."""
    _bound.set({**_bound.get(), **values})


class _Clock:
    """Writes times to the millisecond. What changes once a second is made once a second."""

    def __init__(self) -> None:
        self._made = (-1, "")

    def write(self, at: float) -> str:
        whole = int(at)
        second, text = self._made
        if whole != second:
            text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._made = (whole, text)  # in one step: threads share this
        return f"{text}.{int((at - whole) * 1e3):03d}Z"


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: at, level, logger, event, the caller's extras, and a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = _Clock()

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": self._clock.write(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_bound.get(),
            **{key: value for key, value in record.__dict__.items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _dump(line).decode()


def _dump(line: Mapping[str, object]) -> bytes:
    try:
        return orjson.dumps(line, default=str)
    except TypeError:
        # A number or a string that JSON has and orjson does not take: the line must not be lost.
        return json.dumps(line, default=str).encode()


class _Lines(logging.StreamHandler[IO[str]]):
    """Writes lines to a stream; those of `tell` together, some milliseconds later."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self.setFormatter(JsonLines())
        self._clock = _Clock()
        self._waiting: list[bytes] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record at once, behind what was told before it."""
        self._write_waiting()
        super().emit(record)

    def flush(self) -> None:
        """Write all that waits; the interpreter's end calls this too."""
        self.acquire()
        try:
            self._write_waiting()
            super().flush()
        finally:
            self.release()

    def tell(self, logger: str, event: str, fields: Mapping[str, object]) -> None:
        """Take a line of level info, to be written soon. Called on an event loop."""
        at = self._clock.write(time.time())
        line = _dump({"at": at, "level": "info", "logger": logger, "event": event, **_bound.get(), **fields})
        self.acquire()  # records are written by any thread
        self._waiting.append(line)
        first = len(self._waiting) == 1
        self.release()
        if first:
            asyncio.get_running_loop().call_later(WAIT_S, self.flush)

    def _write_waiting(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self.stream.write(b"\n".join(waiting).decode() + "\n")


def tell(logger: logging.Logger, event: str, fields: Mapping[str, object]) -> None:
    """Log one of very many lines of level info, on an event loop, at a fraction of the price of a record.

    The line is that of a record with these extras. It is written a moment later, together with others: a system call
    a line, and the reader it wakes, cost more than all the rest. A process that is killed loses that moment.
    """
    root = logging.getLogger()
    if len(root.handlers) == 1 and isinstance(root.handlers[0], _Lines):
        root.handlers[0].tell(logger.name, event, fields)
    else:  # somebody else listens, and wants records
        logger.handle(
            logger.makeRecord(logger.name, logging.INFO, __file__, 0, event, (), None, None, fields)
        )


def configure(level: int, stream: IO[str] | None = None) -> None:
    """Send the logs of the whole process to `stream`, standard error by default."""
    # No line says these, and finding them out takes longer than all the rest of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [_Lines(stream or sys.stderr)]
    root.setLevel(level)
