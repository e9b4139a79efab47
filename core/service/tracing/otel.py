"""Spans of the OpenTelemetry SDK, which reads its other variables itself: endpoint, headers, sampler, batches."""

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

from tagsmith.core.base.errors import Invalid
from tagsmith.core.service import version

#: The entry point group of trace exporters.
EXPORTERS = "opentelemetry_traces_exporter"
#: The SDK's name of a service without a name.
UNNAMED = "unknown_service"
#: Maximum time to send the last spans at exit; an unreachable collector must not delay it.
CLOSE_S = 3.0

_HEADER = "traceparent"
_log = logging.getLogger(__name__)


class Tracing:
    """Creates the spans of one process."""

    def __init__(self, provider: TracerProvider) -> None:
        #: For frameworks that create their own spans.
        self.provider = provider
        self._tracer = provider.get_tracer("tagsmith", version.package_version())
        # Between processes a trace context is always passed as the W3C header.
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to(cls, exporters: Sequence[str], service: str) -> "Tracing":
        """Create a tracing that sends spans to the given exporters, if they are installed."""
        resource = Resource.create()
        if str(resource.attributes[SERVICE_NAME]).startswith(UNNAMED):
            resource = resource.merge(Resource({SERVICE_NAME: service}))
        # Closed explicitly: at exit, the SDK would wait half a minute for an unreachable collector.
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        for name in exporters:
            processor = _processor(name)
            if processor is not None:
                provider.add_span_processor(processor)
        return cls(provider)

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[Span]:
        """Open a child span of the current span, and make it current."""
        # Without the text of the error, which can contain user data.
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
        """Open a child span of the current span without making it current, for code that is suspended meanwhile."""
        span = self._tracer.start_span(name)
        try:
            yield span
        finally:
            span.end()

    @contextlib.contextmanager
    def taken_up(
        self, name: str, traceparent: str | None, attributes: Mapping[str, str | int]
    ) -> Iterator[Span]:
        """Open the span of work that another process requested, in the trace of that request."""
        parent = self._propagator.extract({} if traceparent is None else {_HEADER: traceparent})
        with self._tracer.start_as_current_span(
            name, context=parent, kind=SpanKind.CONSUMER, attributes=dict(attributes)
        ) as span:
            yield span

    def traceparent(self) -> str | None:
        """Return the context of the current span, for the process that continues the work; None without a span."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get(_HEADER)

    def ids(self) -> dict[str, str]:
        """Return the ids of the current span for log lines; empty without a span."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
        }

    def name_route(self, method: str, route: str) -> None:
        """Name the current span of a request that the framework did not route."""
        span = trace.get_current_span()
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)

    def failed(self, span: Span, reason: str) -> None:
        """Mark a span as failed."""
        span.set_status(StatusCode.ERROR, reason)

    def close(self) -> None:
        """Send the remaining spans, within CLOSE_S."""
        closing = threading.Thread(target=self.provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_S)


def _processor(exporter: str) -> BatchSpanProcessor | None:
    for entry in metadata.entry_points(group=EXPORTERS, name=exporter):
        try:
            return BatchSpanProcessor(entry.load()())
        except ValueError as error:
            message = f"The OpenTelemetry variables of the exporter {exporter} are not valid: {error}."
            raise Invalid(message, code="invalid_setting") from error
    _log.warning("the trace exporter is not installed", extra={"exporter": exporter})
    return None
