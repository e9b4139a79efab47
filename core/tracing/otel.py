"""Spans, by OpenTelemetry's SDK. It reads the rest of its variables itself: endpoint, headers, sampler, batches."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from core import version
from core.errors import Invalid

#: Where packages with exporters tell their names.
EXPORTERS = "opentelemetry_traces_exporter"
#: What the SDK calls a service without a name.
UNNAMED = "unknown_service"
#: How long the end of a process waits for the last spans to be taken; a collector that is away must not hold it up.
CLOSE_S = 3.0

_HEADER = "traceparent"
_log = logging.getLogger(__name__)


class Tracing:
    """Makes the spans of one process."""

    def __init__(self, provider: TracerProvider) -> None:
        #: For frameworks that make spans of their own.
        self.provider = provider
        self._tracer = provider.get_tracer("tagsmith", version.package_version())
        # As text between processes a trace is always W3C's header.
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to(cls, exporters: Sequence[str], service: str) -> "Tracing":
        """Trace to these exporters, of those that are installed."""
        resource = Resource.create()
        if str(resource.attributes[SERVICE_NAME]).startswith(UNNAMED):
            resource = resource.merge(Resource({SERVICE_NAME: service}))
        # Closed by hand: at exit the SDK would wait for a collector that is away, for half a minute.
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        for name in exporters:
            processor = _processor(name)
            if processor is not None:
                provider.add_span_processor(processor)
        return cls(provider)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[Span]:
        """Make a span within the present one."""
        # Not with the text of an error: that may be somebody's.
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                raise

    @contextlib.contextmanager
    def aside(self, name: str) -> Iterator[Span]:
        """Make a span within the present one that does not become the present one: for what is suspended on the way."""
        span = self._tracer.start_span(name)
        try:
            yield span
        finally:
            span.end()

    @contextlib.contextmanager
    def taken_up(
        self, name: str, traceparent: str | None, attributes: Mapping[str, str | int]
    ) -> Iterator[Span]:
        """Make the span of work that was asked for elsewhere, in the trace that it was asked for in."""
        parent = self._propagator.extract({} if traceparent is None else {_HEADER: traceparent})
        with self._tracer.start_as_current_span(
            name, context=parent, kind=SpanKind.CONSUMER, attributes=dict(attributes)
        ) as span:
            yield span

    def traceparent(self) -> str | None:
        """Write the present span for whoever goes on with what it began; None outside of any."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get(_HEADER)

    def ids(self) -> dict[str, str]:
        """Give the ids of the present span, as log lines have them; none outside of any."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
        }

    def name_route(self, method: str, route: str) -> None:
        """Name the present span, of a request that a framework did not route, as it would have."""
        span = trace.get_current_span()
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)

    def failed(self, span: Span, reason: str) -> None:
        """Mark a span as that of something that failed."""
        span.set_status(StatusCode.ERROR, reason)

    def close(self) -> None:
        """Send what has not been sent, unless that takes long."""
        closing = threading.Thread(target=self.provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_S)


def _processor(exporter: str) -> BatchSpanProcessor | None:
    for entry in metadata.entry_points(group=EXPORTERS, name=exporter):
        try:
            return BatchSpanProcessor(entry.load()())
        except ValueError as error:
            message = f"the variables of OpenTelemetry for {exporter} are wrong: {error}"
            raise Invalid(message, code="invalid_setting") from error
    _log.warning("there is no such exporter of traces", extra={"exporter": exporter})
    return None
