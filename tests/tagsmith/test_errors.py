"""What errors print."""

import pickle

from tagsmith import ApiError, JobFailed
from tagsmith.wire import Job

JOB = {
    "id": "job_x", "kind": "train", "allowed_actions": [], "model": "ner", "spec": {}, "progress": None, "result": None,
    "queue": "quick", "worked_seconds": 0.0, "attempt": 1, "cancel_requested": False, "retry_of": None,
    "request_id": None, "created_at": "2026-01-31T08:00:00Z", "queued_at": "2026-01-31T08:00:00Z",
    "started_at": None, "finished_at": None,
}  # fmt: skip


def test_a_problem_is_printed_with_its_places() -> None:
    errors = [
        {"line": 2, "detail": "expected 3 columns, found 2"},
        {"pointer": "/trainer/pases", "detail": "unknown field"},
        {"parameter": "label", "detail": "must be a number"},
        {"detail": "something else"},
    ]
    error = ApiError(422, {"code": "invalid", "detail": "The corpus is not valid.", "errors": errors})
    assert str(error).splitlines() == [
        "422 invalid: The corpus is not valid.",
        "  line 2: expected 3 columns, found 2",
        "  /trainer/pases: unknown field",
        "  label: must be a number",
        "  something else",
    ]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_many_places_are_counted() -> None:
    error = ApiError(
        422, {"code": "x", "detail": "No.", "errors": [{"line": n, "detail": ""} for n in range(30)]}
    )
    assert str(error).splitlines()[-1] == "  and 20 more"
    assert len(error.errors) == 30


def test_a_fault_of_the_server_names_the_request() -> None:
    error = ApiError(500, {"code": "internal", "detail": "Oh.", "request_id": "req_1"})
    assert "req_1" in str(error)
    assert "req_1" not in str(ApiError(404, {"code": "x", "request_id": "req_1"}))


def test_a_failed_job_says_why() -> None:
    error = {"code": "out_of_memory", "message": "The job needs more memory."}
    failed = JobFailed(Job.model_validate({**JOB, "state": "failed", "error": error}))
    assert str(failed) == "The train job job_x failed (out_of_memory): The job needs more memory."
    assert (failed.code, failed.job.id) == ("out_of_memory", "job_x")
    cancelled = JobFailed(Job.model_validate({**JOB, "state": "cancelled", "error": None}))
    assert str(cancelled) == "The train job job_x was cancelled."
    assert cancelled.code == "cancelled"
