"""Traces through OpenTelemetry, where its standard variables ask for them.

What they need is an extra, `tagsmith[otel]`, and only `core.tracing.otel` knows it. That module is imported here, when
traces are asked for, and nowhere else; without them everything that could be traced has None in place of a `Tracing`.
"""

import logging
from typing import TYPE_CHECKING

from core.settings import trace_exporters

if TYPE_CHECKING:
    from core.tracing.otel import Tracing

_log = logging.getLogger(__name__)


def started(service: str) -> "Tracing | None":
    """Begin to trace this process if the environment says so; `service` is its name unless that says another."""
    exporters = trace_exporters()
    if not exporters:
        return None
    try:
        from core.tracing import otel  # noqa: PLC0415  # an extra, and not wanted by most
    except ImportError as error:
        # Variables of this kind are often set for everything on a machine: no reason not to serve.
        _log.warning("nothing is traced: install tagsmith[otel]", extra={"reason": str(error)})
        return None
    return otel.Tracing.to(exporters, service)
