"""Logs as JSON lines on standard error: one object per line, with the same keys in API and workers."""

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

from tagsmith.core.service.lines import LineWriter

#: Attributes of every LogRecord. All others come from the caller's `extra` and are written to the line.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


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


class _Lines(logging.Handler):
    """Writes lines to a stream. Those of `write_later` are written together, some milliseconds later."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.writer = LineWriter(stream, self._notice)
        self._clock = _Clock()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record after the lines before it."""
        try:
            self.writer.write(self.format(record) + "\n")
        except Exception:  # noqa: BLE001  # as in every handler of the library: a line must not stop the program
            self.handleError(record)

    def flush(self) -> None:
        """Write what waits. Also called when the interpreter exits."""
        self.writer.flush()

    def write_later(self, logger: str, event: str, fields: Mapping[str, object]) -> None:
        """Queue a line of level info."""
        line = self._line("info", logger, event, {**_bound.get(), **fields})
        self.writer.write(line, soon=False)

    def _notice(self, count: int) -> str:
        return self._line("warning", __name__, "log lines dropped: nobody reads them", {"lines": count})

    def _line(self, level: str, logger: str, event: str, fields: Mapping[str, object]) -> str:
        at = self._clock.write(time.time())
        return _dump({"at": at, "level": level, "logger": logger, "event": event, **fields}).decode() + "\n"


def write_later(logger: logging.Logger, event: str, fields: Mapping[str, object]) -> None:
    """Log a frequent line of level info, at a fraction of the cost of a record.

    The line equals that of a record with these extras. It is written a little later, together with others, because a
    system call per line would cost more than everything else. A killed process loses the queued lines.
    """
    lines = _lines()
    if lines is not None:
        lines.write_later(logger.name, event, fields)
    else:  # another handler is installed, and needs records
        logger.handle(
            logger.makeRecord(logger.name, logging.INFO, __file__, 0, event, (), None, None, fields)
        )


def dropped() -> int:
    """Return the number of lines of this process that were dropped because nobody read them."""
    lines = _lines()
    return 0 if lines is None else lines.writer.dropped


def _lines() -> _Lines | None:
    handlers = logging.getLogger().handlers
    return handlers[0] if len(handlers) == 1 and isinstance(handlers[0], _Lines) else None


def configure(level: int, stream: IO[str] | None = None) -> None:
    """Send the logs of the whole process to `stream`, standard error by default."""
    # No line has these values, and collecting them takes most of the time of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [_Lines(stream or sys.stderr)]
    root.setLevel(level)
