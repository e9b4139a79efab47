"""Logs as JSON lines on standard error: one object per line, with the same keys in API and workers."""

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

#: Attributes of every LogRecord. All others come from the caller's `extra` and are written to the line.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


#: Time for which lines of requests are collected before they are written together.
WAIT_S = 0.05

#: Values in every line of the current request or job.
_bound: contextvars.ContextVar[Mapping[str, object]] = contextvars.ContextVar(
    "bound", default=MappingProxyType({})
)


def bind(**values: object) -> None:
    """Add these values to all further lines of this request or job, and remove those bound before."""
    _bound.set(values)


def bind_also(**values: object) -> None:
    """Add more values to all further lines of this request or job."""
    _bound.set({**_bound.get(), **values})


class _Clock:
    """Formats times to the millisecond. The part up to the second is cached."""

    def __init__(self) -> None:
        self._made = (-1, "")

    def write(self, at: float) -> str:
        whole = int(at)
        second, text = self._made
        if whole != second:
            text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._made = (whole, text)  # one assignment: threads share this
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
        # orjson refuses some valid numbers and strings. The line must not be lost.
        return json.dumps(line, default=str).encode()


class _Lines(logging.StreamHandler[IO[str]]):
    """Writes lines to a stream. Lines of `write_later` are written together, some milliseconds later."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self.setFormatter(JsonLines())
        self._clock = _Clock()
        self._waiting: list[bytes] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write the queued lines and then the record."""
        self._write_waiting()
        super().emit(record)

    def flush(self) -> None:
        """Write the queued lines. Also called when the interpreter exits."""
        self.acquire()
        try:
            self._write_waiting()
            super().flush()
        finally:
            self.release()

    def write_later(self, logger: str, event: str, fields: Mapping[str, object]) -> None:
        """Queue a line of level info. Must be called on an event loop."""
        at = self._clock.write(time.time())
        line = _dump({"at": at, "level": "info", "logger": logger, "event": event, **_bound.get(), **fields})
        self.acquire()  # any thread can write records
        self._waiting.append(line)
        first = len(self._waiting) == 1
        self.release()
        if first:
            asyncio.get_running_loop().call_later(WAIT_S, self.flush)

    def _write_waiting(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self.stream.write(b"\n".join(waiting).decode() + "\n")


def write_later(logger: logging.Logger, event: str, fields: Mapping[str, object]) -> None:
    """Log a frequent line of level info from an event loop, at a fraction of the cost of a record.

    The line equals that of a record with these extras. It is written after `WAIT_S`, together with others, because a
    system call per line would cost more than everything else. A killed process loses the queued lines.
    """
    root = logging.getLogger()
    if len(root.handlers) == 1 and isinstance(root.handlers[0], _Lines):
        root.handlers[0].write_later(logger.name, event, fields)
    else:  # another handler is installed, and needs records
        logger.handle(
            logger.makeRecord(logger.name, logging.INFO, __file__, 0, event, (), None, None, fields)
        )


def configure(level: int, stream: IO[str] | None = None) -> None:
    """Send the logs of the whole process to `stream`, standard error by default."""
    # No line has these values, and collecting them takes most of the time of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [_Lines(stream or sys.stderr)]
    root.setLevel(level)
