"""Traces of jobs: a worker goes on in the trace in which a job was posted."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from tagsmith.core.jobs import jobs
from tagsmith.core.service import messages
from tagsmith.core.store.engine import Database
from tagsmith.worker.context import Context
from tagsmith.worker.run import run_job
from tests.tracing import Traces, ids, lines_of, parent
from tests.worker import processes
from tests.worker.counting import count

TRACE, POSTED = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def traces() -> Traces:
    return Traces()


@pytest.fixture
def context(sqlite_url: str, redis_url: str, tmp_path: Path, traces: Traces) -> Iterator[Context]:
    made = Context(
        settings=processes.settings(sqlite_url, redis_url, tmp_path),
        db=Database(sqlite_url),
        redis=messages.connect(redis_url),
        worker_id="here",
        stop=Event(),
        busy=Event(),
        send=lambda job: True,
        runners={"train": count},
        tracing=traces.tracing,
    )
    yield made
    made.redis.close()
    made.db.dispose()


def posted(context: Context, traceparent: str | None, **spec: object) -> str:
    origin = jobs.Origin("req-1", traceparent)
    with context.db.write() as conn:
        return jobs.create(conn, kind="train", spec=spec, model="counter", origin=origin, queue="quick").id


def test_a_job_is_a_span_of_the_trace_in_which_it_was_posted(context: Context, traces: Traces) -> None:
    job_id = posted(context, f"00-{TRACE}-{POSTED}-01", passes=2, pass_s=0)
    with lines_of("tagsmith.worker.run") as lines:
        run_job(context, job_id)
    span = traces.take("job train")
    assert (ids(span)[0], parent(span)) == (TRACE, POSTED)
    assert span.kind is SpanKind.CONSUMER
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes == {
        "tagsmith.job.id": job_id,
        "tagsmith.job.kind": "train",
        "tagsmith.job.queue": "quick",
        "tagsmith.job.attempt": 1,
        "tagsmith.job.state": "succeeded",
    }
    assert [line["event"] for line in lines] == ["job started", "job left as succeeded"]
    assert {(line["trace_id"], line["span_id"]) for line in lines} == {ids(span)}


def test_a_job_that_was_not_traced_when_posted_begins_a_trace(context: Context, traces: Traces) -> None:
    run_job(context, posted(context, None, passes=1, pass_s=0))
    assert parent(traces.take("job train")) is None


def test_a_job_of_a_trace_that_is_not_sampled_is_not_either(context: Context, traces: Traces) -> None:
    run_job(context, posted(context, f"00-{TRACE}-{POSTED}-00", passes=1, pass_s=0))
    assert traces.all() == ()


def test_a_job_that_fails_is_an_error_of_its_span(context: Context, traces: Traces) -> None:
    unknown = dataclasses.replace(context, runners={})
    run_job(unknown, posted(context, None))
    span = traces.take("job train")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "unknown_kind"
    assert (span.attributes or {})["tagsmith.job.state"] == "failed"
