"""Logs as JSON lines on standard error: one object a line, the same keys from API and workers."""

import contextvars
import json
import logging
import sys
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


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: at, level, logger, event, the caller's extras, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_bound.get(),
            **{key: value for key, value in record.__dict__.items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except (
            TypeError
        ):  # a number or a string that JSON has and orjson does not take: the line must not be lost
            return json.dumps(line, default=str)


def configure(level: int, stream: IO[str] | None = None) -> None:
    """Send the logs of the whole process to `stream`, standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    # No line says these, and finding them out takes longer than all the rest of a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
