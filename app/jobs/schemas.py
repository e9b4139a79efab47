"""Shapes of jobs and events on the wire."""

from datetime import datetime
from typing import Any

from pydantic import Field

from app.params import Out
from core.store.states import State


class Job(Out):
    """A job as it stands."""

    id: str
    kind: str
    state: State
    model: str | None = Field(description="The model that it trains or uses, if it is one.")
    spec: dict[str, Any] = Field(description="What was asked for, defaults filled in.")
    progress: dict[str, Any] | None = Field(
        description="pass, passes, fraction, objective, active_features, dev, tokens_per_second, eta_seconds; "
        "of a job of several runs also run (name, number, of), and fraction and eta_seconds are the job's."
    )
    result: dict[str, Any] | None = Field(
        description="Of train: model, version, objective, metrics, passes, stop_reason, and curve, a point a pass. "
        "Of compare: score, table, curves. Of tune: score, folds, table, best, trained. Of evaluate: models, pairs. "
        "Of tag: model, version, format, sentences, tokens, size_bytes, sha256 of the output."
    )
    error: dict[str, Any] | None
    queue: str = Field(description="`quick` for jobs of seconds, which a worker is kept for; else `slow`.")
    worked_seconds: float = Field(
        description="How long workers have had it, in all, as of the last heartbeat."
    )
    attempt: int = Field(description="How often a worker took it.")
    cancel_requested: bool
    retry_of: str | None = Field(
        description="The job that failed or was cancelled, of which this is another try."
    )
    request_id: str | None = Field(description="Of the request that created it.")
    created_at: datetime
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class Event(Out):
    """Something that happened to a job; kept for good."""

    seq: int = Field(description="Counts from 1 in each job, without gaps.")
    type: str = Field(description="`state`, `pass`, `run`, `checkpoint` or `message`.")
    level: str = Field(description="`info`, `warning` or `error`.")
    at: str = Field(json_schema_extra={"format": "date-time"})
    message: str
    data: dict[str, Any]
