"""What is shown while a job runs."""

import io
from typing import Any

from tagsmith.client.watching import ProgressDisplay
from tagsmith.wire import Job, JobEvent, JobProgress
from tests.tagsmith.test_errors import JOB

DEV = {"f1": 84.123, "accuracy": 97.0, "gold": 5, "by_type": {"LOC": {"f1": 80.0}, "PER": {"f1": 90.04}}}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def event(kind: str, data: dict[str, Any], level: str = "info", message: str = "") -> JobEvent:
    return JobEvent(seq=1, type=kind, level=level, at="2026-01-31T08:00:00Z", message=message, data=data)


def show(out: io.StringIO, state: str = "succeeded") -> str:
    running = Job.model_validate({**JOB, "state": "running", "error": None})
    result = {
        "model": "ner",
        "version": 3,
        "metrics": {"dev": DEV},
        "active_features": 24311,
        "size_bytes": 1_400_000,
    }
    ended = running.model_copy(update={"state": state, "result": result, "worked_seconds": 8.2})
    with ProgressDisplay(running, out) as watch:
        watch.show(event("state", {"state": "running"}))
        watch.show(JobProgress(data={"fraction": 0.25, "pass": 1, "passes": 4, "phase": "train"}))
        point = {"fraction": 0.5, "pass": 2, "passes": 4, "objective": 9120.0, "dev": DEV,
                 "tokens_per_second": 1.9e6, "eta_seconds": 63}  # fmt: skip
        watch.show(event("pass", point))
        watch.show(JobProgress(data={"fraction": 0.4, "pass": 2, "passes": 4}))
        watch.show(event("message", {}, "warning", "12 labels break IOB2."))
        watch.end(ended)
    return out.getvalue()


def test_a_pipe_gets_a_line_per_state_and_pass() -> None:
    assert show(io.StringIO()).splitlines() == [
        "train ner  running",
        "train ner  pass 2/4  objective 9,120.0  dev F1 84.12  1.90 M tokens/s  1:03 left",
        "train ner  ! 12 labels break IOB2.",
        "train ner  done in 8.2 s: ner:3  dev F1 84.12 (LOC 80.0, PER 90.0)  24,311 features  1.4 MB",
    ]


def test_a_terminal_gets_one_live_line_that_never_moves_back() -> None:
    drawn = show(Terminal()).split("\r")
    assert [line.partition("%")[0][-3:].strip() for line in drawn[1:3]] == ["25", "50"]
    assert "40%" not in "".join(drawn)
    warning, end = drawn[3].splitlines()
    assert warning.rstrip() == "train ner  ! 12 labels break IOB2."
    assert len(warning) >= len(drawn[2]), "the line below shows through"
    assert end.startswith("train ner  done in 8.2 s: ner:3")


def test_what_did_not_succeed_is_not_called_done() -> None:
    assert "done" not in show(io.StringIO(), "failed")
    assert show(Terminal(), "cancelled").rstrip().endswith("train ner  cancelled")
