"""The names of what is counted, what each is, and its labels."""

from collections.abc import Mapping
from dataclasses import dataclass

REQUESTS = "tagsmith_http_request_duration_seconds"
TAGGED = "tagsmith_tag_requests_total"
STREAMS = "tagsmith_open_streams"
DATABASE = "tagsmith_database_up"
JOBS = "tagsmith_jobs"
JOB_SECONDS = "tagsmith_job_seconds"
OLDEST = "tagsmith_oldest_queued_seconds"
ALIASES = "tagsmith_alias_version"

#: The route of a request that found none.
NO_ROUTE = "none"


@dataclass(frozen=True, slots=True)
class About:
    """What is said about a metric."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()


ABOUT: Mapping[str, About] = {
    REQUESTS: About("histogram", "Requests by how long they took.", ("method", "route", "status")),
    TAGGED: About("counter", "Answers of /tag.", ("model",)),
    STREAMS: About("gauge", "Event streams that are open."),
    DATABASE: About("gauge", "Whether the database answered; without it the metrics below are missing."),
    JOBS: About("gauge", "Jobs that are stored.", ("kind", "state")),
    JOB_SECONDS: About("summary", "Time from start to end of jobs that have ended.", ("kind", "state")),
    OLDEST: About("gauge", "How long the job that waits longest has waited."),
    ALIASES: About("gauge", "The version an alias stands for.", ("model", "alias")),
}
