"""OpenTelemetry tracing, enabled by its standard environment variables.

Tracing needs the extra `tagsmith[otel]`. Only the module `otel` imports it, and only this module imports `otel`, when
tracing is enabled. Otherwise all code that can be traced gets None instead of a `Tracing`.
"""

import logging
from typing import TYPE_CHECKING

from tagsmith.core.service.settings import trace_exporters

if TYPE_CHECKING:
    from tagsmith.core.service.tracing.otel import Tracing

_log = logging.getLogger(__name__)


def started(service: str) -> "Tracing | None":
    """Start tracing this process if the environment enables it.

    `service` is the default of the service name.
    """
    exporters = trace_exporters()
    if not exporters:
        return None
    try:
        from tagsmith.core.service.tracing import otel  # noqa: PLC0415  # an optional dependency
    except ImportError as error:
        # Such variables are often set for a whole machine, so a missing extra is not an error.
        _log.warning("tracing is disabled: install tagsmith[otel]", extra={"reason": str(error)})
        return None
    return otel.Tracing.to(exporters, service)
