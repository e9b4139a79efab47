"""Jobs and their events. The spec of a job is defined with its kind; here it is an object."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from tagsmith.wire.base import WireResponse
from tagsmith.wire.names import TERMINAL_STATES, JobActionName, JobState


class Job(WireResponse):
    """The state of a job at the time of the response."""

    id: str
    kind: str
    state: JobState
    allowed_actions: list[JobActionName] = Field(description="The actions that have an effect in this state.")
    model: str | None = Field(
        description="The model that it trains or uses; null if there is not exactly one."
    )
    spec: dict[str, Any] = Field(
        description="The spec as posted, with defaults filled in and names replaced by ids and versions. Lists shorten "
        "its long texts, such as templates."
    )
    progress: dict[str, Any] | None = Field(
        description="pass, passes, fraction, objective, active_features, dev, tokens_per_second, eta_seconds. "
        "A job with several runs adds run (name, number, of); fraction and eta_seconds then cover the whole job."
    )
    result: dict[str, Any] | None = Field(
        description="An object whose fields depend on the kind. Lists omit its long parts, such as `curve`."
    )
    error: dict[str, Any] | None
    queue: str = Field(
        description="`quick` for jobs that take seconds, which have a worker of their own; else `slow`."
    )
    worked_seconds: float = Field(description="Time that workers have spent on it, as of the last heartbeat.")
    attempt: int = Field(description="How many times a worker has claimed it.")
    cancel_requested: bool
    retry_of: str | None = Field(description="The failed or cancelled job that this one repeats.")
    request_id: str | None = Field(description="Of the request that created it.")
    created_at: datetime
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def done(self) -> bool:
        """Whether the job has ended, successfully or not."""
        return self.state in TERMINAL_STATES


class JobEvent(WireResponse):
    """Something that happened to a job."""

    seq: int = Field(description="Counts from 1 within each job, without gaps.")
    type: str = Field(description="`state`, `pass`, `run`, `checkpoint` or `message`.")
    level: str = Field(description="`info`, `warning` or `error`.")
    at: str = Field(json_schema_extra={"format": "date-time"})
    message: str
    data: dict[str, Any]


class JobProgress(WireResponse):
    """A sign of life between two events of a stream: not numbered and not kept."""

    type: Literal["progress"] = "progress"
    seq: None = None
    at: None = None
    message: Literal[""] = ""
    data: dict[str, Any]
