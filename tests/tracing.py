"""Traces kept in memory, and the log lines written meanwhile."""

import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from tagsmith.core.service import logs
from tagsmith.core.service.tracing.otel import Tracing
from tests.services import wait_until


class Traces:
    """What a process traced."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracing = Tracing(provider)

    def take(self, name: str) -> ReadableSpan:
        """Wait for a span to end, and forget it with all that came with it."""
        wait_until(lambda: any(span.name == name for span in self.all()), f"a span {name}")
        found = [span for span in self.all() if span.name == name]
        self._kept.clear()
        assert len(found) == 1
        return found[0]

    def all(self) -> tuple[ReadableSpan, ...]:
        return self._kept.get_finished_spans()


def ids(span: ReadableSpan) -> tuple[str, str]:
    """The ids of a span, as they are written."""
    assert span.context is not None
    return format_trace_id(span.context.trace_id), format_span_id(span.context.span_id)


def parent(span: ReadableSpan) -> str | None:
    return None if span.parent is None else format_span_id(span.parent.span_id)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.setFormatter(logs.JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@contextlib.contextmanager
def lines_of(name: str) -> Iterator[list[dict[str, Any]]]:
    """The lines that a logger writes, as they are written."""
    logger, handler = logging.getLogger(name), _Lines()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
