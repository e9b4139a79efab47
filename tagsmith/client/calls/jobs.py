"""Calls about jobs. Specs are mappings, posted as they are."""

from collections.abc import Mapping
from typing import Any

from tagsmith.client.call import (
    Call,
    Pages,
    as_bytes,
    as_model,
    as_nothing,
    as_text,
    given,
    idempotency,
    path_of,
)
from tagsmith.wire import Job, JobCheck, JobEvent


def submit(spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Call[Job]:
    """Start a job of any kind."""
    return Call("POST", "/jobs", as_model(Job), json=dict(spec), headers=idempotency(idempotency_key))


def validate(spec: Mapping[str, Any]) -> Call[JobCheck]:
    """Check a job of any kind without starting it; the result has the spec with defaults and an estimate."""
    return Call("POST", "/jobs/validate", as_model(JobCheck), json=dict(spec), safe=True)


def compare(spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Call[Job]:
    """Start a job that compares trainers."""
    return submit({"kind": "compare", **spec}, idempotency_key=idempotency_key)


def tune(spec: Mapping[str, Any], *, idempotency_key: str | None = None) -> Call[Job]:
    """Start a job that searches for the best spec."""
    return submit({"kind": "tune", **spec}, idempotency_key=idempotency_key)


def tag_corpus(
    model: str, corpus_id: str, *, idempotency_key: str | None = None, **options: Any
) -> Call[Job]:
    """Start a job that labels a corpus with a model; `output` then returns the labelled corpus."""
    spec = {"kind": "tag", "model": model, "corpus": corpus_id, **options}
    return submit(spec, idempotency_key=idempotency_key)


def rank(model: str, corpus_id: str, *, idempotency_key: str | None = None, **options: Any) -> Call[Job]:
    """Start a job that lists the sentences of a corpus that a model is least sure about; `output` returns the list.

    `options` are fields of the spec: `by` (`probability`, `margin` or `entropy`), `per_token`, `top` and `diverse`.
    """
    spec = {"kind": "rank", "model": model, "corpus": corpus_id, **options}
    return submit(spec, idempotency_key=idempotency_key)


def output(job_id: str) -> Call[bytes]:
    """Get the file that a finished `tag` or `rank` job wrote."""
    return Call("GET", path_of("jobs", job_id, "output"), as_bytes)


def table(job_id: str) -> Call[str]:
    """Get the table of a finished job as CSV."""
    return Call("GET", path_of("jobs", job_id, "table.csv"), as_text)


def plot(job_id: str) -> Call[str]:
    """Get the learning curves of a finished job as SVG."""
    return Call("GET", path_of("jobs", job_id, "plot.svg"), as_text)


def jobs(*, state: str | None = None, model: str | None = None) -> Pages[Job]:
    """List jobs, newest first."""
    return Pages(Job, "/jobs", given(state=state, model=model))


def job(job_id: str) -> Call[Job]:
    """Get the current state of a job, by its id or its last six characters."""
    return Call("GET", path_of("jobs", job_id), as_model(Job))


def cancel(job_id: str) -> Call[Job]:
    """Request that a job stop."""
    return _control(job_id, "cancel")


def pause(job_id: str) -> Call[Job]:
    """Request that a job store a checkpoint and release its worker."""
    return _control(job_id, "pause")


def resume(job_id: str) -> Call[Job]:
    """Continue a paused job from its checkpoint."""
    return _control(job_id, "resume")


def retry(job_id: str, *, idempotency_key: str | None = None) -> Call[Job]:
    """Start a new job with the spec of one that failed or was cancelled."""
    return _control(job_id, "retry", idempotency(idempotency_key))


def delete_job(job_id: str) -> Call[None]:
    """Delete a job that has ended, with its events and its output. The versions that it published stay."""
    return Call("DELETE", path_of("jobs", job_id), as_nothing)


def events(job_id: str, *, after: int = 0) -> Pages[JobEvent]:
    """List the events of a job that come after number `after`."""
    return Pages(JobEvent, path_of("jobs", job_id, "events"), {"after": after}, cursor="after")


def _control(job_id: str, action: str, headers: Mapping[str, str] | None = None) -> Call[Job]:
    return Call("POST", path_of("jobs", job_id, action), as_model(Job), headers=headers or {})
