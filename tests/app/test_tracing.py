"""Traces of requests, of tagging and of what posts a job, by the real SDK."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from opentelemetry.trace import SpanKind, StatusCode

from tagsmith.app.http.policy import policy
from tagsmith.core.jobs import jobs
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tests.app import samples
from tests.app.servers import ThreadServer
from tests.services import wait_until
from tests.tracing import Traces, ids, lines_of, parent

#: A span of some caller.
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
SENTENCES = [[["Rockwell", "NNP"], ["said", "VBD"]], [["It", "PRP"]]]
NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None, seed=1,
    code_version="test", job_id=None,
)  # fmt: skip


@pytest.fixture(scope="module")
def traces() -> Traces:
    return Traces()


@pytest.fixture(scope="module")
def server(
    sqlite_url: str, tmp_path_factory: pytest.TempPathFactory, traces: Traces
) -> Iterator[ThreadServer]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), database_url=sqlite_url)

    def break_it(app: FastAPI) -> None:
        app.add_api_route("/jobs/{job_id}/broken", policy(Scope.READ)(lambda job_id: 1 // 0))

    with ThreadServer(settings, prepare=break_it, tracing=traces.tracing) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def http(server: ThreadServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def database(sqlite_url: str) -> Iterator[Database]:
    made = Database(sqlite_url)
    yield made
    made.dispose()


@pytest.fixture(scope="module", autouse=True)
def chunker(database: Database, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = samples.model_file("v1", tmp_path_factory.mktemp("models") / "v1")
    with database.write() as conn:
        models.publish(conn, "chunker", NEW, [data])


def test_a_request_is_a_span_named_by_its_route_in_the_trace_of_its_caller(
    http: httpx.Client, traces: Traces
) -> None:
    assert http.get("/models/nobody/versions?limit=3", headers=GIVEN).status_code == 404
    span = traces.take("GET /models/{name}/versions")
    assert (ids(span)[0], parent(span)) == (TRACE, CALLER)
    assert span.kind is SpanKind.SERVER
    assert span.status.status_code is StatusCode.UNSET
    path = "/models/nobody/versions"
    wanted = {"http.route": "/models/{name}/versions", "http.response.status_code": 404, "url.path": path}
    assert wanted.items() <= dict(span.attributes or {}).items()


@pytest.mark.parametrize(
    "given", [{}, {"traceparent": "nonsense"}, {"traceparent": f"00-{'0' * 32}-{CALLER}-01"}]
)
def test_without_a_sound_traceparent_a_trace_begins(
    http: httpx.Client, traces: Traces, given: dict[str, str]
) -> None:
    http.get("/models", headers=given)
    span = traces.take("GET /models")
    assert parent(span) is None
    assert ids(span)[0] not in (TRACE, "0" * 32)


def test_a_fault_of_ours_is_an_error_of_its_span(http: httpx.Client, traces: Traces) -> None:
    assert http.get("/jobs/x/broken").status_code == 500
    span = traces.take("GET /jobs/{job_id}/broken")
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["http.response.status_code"] == 500


def test_probes_are_not_traced(http: httpx.Client, traces: Traces) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        http.get(path)
    http.get("/version")
    wait_until(lambda: len(traces.all()) == 1, "one span")
    assert [span.name for span in traces.all()] == ["GET /version"]
    traces.take("GET /version")


def test_lines_of_a_request_have_the_ids_of_its_span(http: httpx.Client, traces: Traces) -> None:
    with lines_of("app.access") as lines:
        http.get("/models", headers=GIVEN | {"X-Request-Id": "traced-1"})
        http.get("/livez")
        wait_until(lambda: len(lines) == 2, "both lines")
    traced, probe = lines
    assert (traced["trace_id"], traced["span_id"]) == ids(traces.take("GET /models"))
    assert (traced["trace_id"], traced["request_id"]) == (TRACE, "traced-1")
    assert "trace_id" not in probe


def tag_spans(traces: Traces) -> tuple[Any, Any]:
    """The span of tagging, and that of its request."""
    wait_until(lambda: len(traces.all()) == 2, "both spans")
    by_name = {span.name: span for span in traces.all()}
    traces.take("tag")
    return by_name["tag"], by_name["POST /tag"]


@pytest.mark.parametrize("more", [{}, {"marginals": True}])
def test_tagging_is_a_span_of_its_own_that_says_by_what_and_how_much(
    http: httpx.Client, traces: Traces, more: dict[str, Any]
) -> None:
    body = {"model": "chunker", "sentences": SENTENCES, **more}
    assert http.post("/tag", json=body, headers=GIVEN).status_code == 200
    tag, request = tag_spans(traces)
    assert (ids(tag)[0], parent(tag)) == ids(request)
    assert parent(request) == CALLER
    assert request.attributes["http.route"] == "/tag"
    assert tag.attributes == {
        "tagsmith.model": "chunker",
        "tagsmith.version": 1,
        "tagsmith.sentences": 2,
        "tagsmith.tokens": 3,
    }


def test_a_stream_is_one_span_of_all_its_lines(http: httpx.Client, traces: Traces) -> None:
    lines = [{"model": "chunker"}, {"tokens": SENTENCES[0]}, {"tokens": SENTENCES[1]}, {"tokens": 7}]
    body = "".join(f"{json.dumps(line)}\n" for line in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    assert len(http.post("/tag", content=body, headers=headers).text.splitlines()) == 4
    tag, request = tag_spans(traces)
    assert (ids(tag)[0], parent(tag)) == ids(request)
    assert (tag.attributes["tagsmith.sentences"], tag.attributes["tagsmith.tokens"]) == (2, 3)


def test_a_refused_request_tells_the_kind_of_error_and_nothing_of_what_was_sent(
    http: httpx.Client, traces: Traces
) -> None:
    body = {"model": "chunker", "sentences": [["secret"]]}
    assert http.post("/tag", json=body).status_code == 422
    tag, _ = tag_spans(traces)
    assert tag.attributes == {"error.type": "Invalid"}
    assert (tag.events, "secret" in tag.to_json()) == ((), False)


def test_a_job_carries_the_span_that_posted_it(
    http: httpx.Client, traces: Traces, database: Database
) -> None:
    corpus = http.post("/corpora?name=x&format=conll", content=samples.TEXT).json()["id"]
    traces.take("POST /corpora")
    job = http.post("/jobs", json=samples.spec(corpus), headers=GIVEN).json()
    trace, span = ids(traces.take("POST /jobs"))
    with database.read() as conn:
        assert jobs.get(conn, job["id"]).traceparent == f"00-{TRACE}-{span}-01"
    assert trace == TRACE
    assert "traceparent" not in job
    http.post(f"/jobs/{job['id']}/cancel")
    traces.take("POST /jobs/{job_id}/cancel")
    again = http.post(f"/jobs/{job['id']}/retry").json()
    trace, span = ids(traces.take("POST /jobs/{job_id}/retry"))
    with database.read() as conn:
        retried = jobs.get(conn, again["id"])
    assert retried.retry_of == job["id"]
    assert (retried.traceparent or "").startswith(f"00-{trace}-{span}-")
