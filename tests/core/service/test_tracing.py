"""When a process traces, to where, and that nothing of it is there when it does not."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.service import tracing
from tagsmith.core.service.settings import trace_exporters
from tagsmith.core.service.tracing import otel
from tests.tracing import lines_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("said", "exporters"),
    [
        ({}, ()),
        ({"OTEL_SERVICE_NAME": "x"}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://here:4318"}, ("otlp_proto_http",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://here:4318/v1/traces"}, ("otlp_proto_http",)),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp_proto_http",)),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("otlp_proto_grpc",)),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ("console", "otlp_proto_http")),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://here:4318"}, ()),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, ()),
    ],
)
def test_the_standard_variables_say_whether_and_to_where(
    said: dict[str, str], exporters: tuple[str, ...]
) -> None:
    assert trace_exporters(said) == exporters


def test_without_them_nothing_is_imported() -> None:
    code = (
        "import sys; from tagsmith.app.main import create_app; import tagsmith.worker.main\n"
        "from tagsmith.core.service.settings import Settings\n"
        "from tagsmith.core.service import tracing; assert tracing.started('x') is None; create_app(Settings())\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk.trace',"
        " 'opentelemetry.exporter', 'tagsmith.core.service.tracing.otel'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


class Collector(BaseHTTPRequestHandler):
    """Takes traces as a collector does."""

    taken: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        self.taken.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, bytes]]]:
    taken: list[tuple[str, bytes]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Here", (Collector,), {"taken": taken}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield taken
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("named", [None, "ours"])
def test_spans_reach_a_collector_under_the_name_of_the_process(
    collector: list[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    if named is not None:
        monkeypatch.setenv("OTEL_SERVICE_NAME", named)
    made = tracing.started("tagsmith-test")
    assert made is not None
    with made.part("work"):
        pass
    made.close()
    ((path, body),) = collector
    assert path == "/v1/traces"
    (sent,) = ExportTraceServiceRequest.FromString(body).resource_spans
    names = [each.value.string_value for each in sent.resource.attributes if each.key == "service.name"]
    assert names == [named or "tagsmith-test"]
    assert [span.name for scope in sent.scope_spans for span in scope.spans] == ["work"]


def test_a_collector_that_does_not_answer_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel, "CLOSE_S", 0.5)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
    # It takes connections and says nothing. Whoever waits for its answer waits longer than a test may take.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        made = tracing.started("tagsmith-test")
        assert made is not None
        with made.part("work"):
            pass
        made.close()


def test_without_the_extra_it_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "tagsmith.core.service.tracing.otel", None)
    monkeypatch.delattr(tracing, "otel")
    with lines_of("tagsmith.core.service.tracing") as lines:
        assert tracing.started("x") is None
    assert [line["event"] for line in lines] == ["tracing is disabled: install tagsmith[otel]"]


def test_an_exporter_that_is_not_there_is_named_and_a_setting_that_is_wrong_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with lines_of("tagsmith.core.service.tracing.otel") as lines:
        made = tracing.started("x")
    assert made is not None
    made.close()
    assert [line["exporter"] for line in lines] == ["zipkin"]
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    with pytest.raises(Invalid, match="otlp_proto_http"):
        tracing.started("x")
