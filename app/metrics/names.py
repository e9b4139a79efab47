"""The names of what is counted, what each is, and its labels."""

from collections.abc import Mapping
from dataclasses import dataclass

REQUESTS = "tagsmith_http_request_duration_seconds"
TAGGED = "tagsmith_tag_requests_total"
SENTENCES = "tagsmith_tagged_sentences_total"
TOKENS = "tagsmith_tagged_tokens_total"
CACHE_HITS = "tagsmith_model_cache_hits_total"
CACHE_MISSES = "tagsmith_model_cache_misses_total"
CACHE_BYTES = "tagsmith_model_cache_bytes"
OPEN_MODELS = "tagsmith_open_models"
STREAMS = "tagsmith_open_streams"
DATABASE = "tagsmith_database_up"
JOBS = "tagsmith_jobs"
JOB_SECONDS = "tagsmith_job_seconds"
OLDEST = "tagsmith_oldest_queued_seconds"
QUEUE_JOBS = "tagsmith_queue_jobs"
QUEUE_SECONDS = "tagsmith_queue_oldest_seconds"
LEASE_SECONDS = "tagsmith_oldest_lease_seconds"
LEASE_OVERDUE = "tagsmith_lease_overdue_seconds"
ALIASES = "tagsmith_alias_version"

#: What the processes of a machine count, and what they have open, in the order in which it is shown.
COUNTERS = (TAGGED, SENTENCES, TOKENS, CACHE_HITS, CACHE_MISSES)
GAUGES = (CACHE_BYTES, OPEN_MODELS, STREAMS)

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
    SENTENCES: About("counter", "Sentences, and lines of text, that /tag has tagged.", ("model",)),
    TOKENS: About("counter", "Tokens that /tag has tagged.", ("model",)),
    CACHE_HITS: About("counter", "Times a model was asked for and open."),
    CACHE_MISSES: About("counter", "Times a model had to be opened."),
    CACHE_BYTES: About("gauge", "Size of the model files on local disk."),
    OPEN_MODELS: About("gauge", "Models that are open, one in two processes counted twice."),
    STREAMS: About("gauge", "Event streams that are open."),
    DATABASE: About("gauge", "Whether the database answered; without it the metrics below are missing."),
    JOBS: About("gauge", "Jobs that are stored.", ("kind", "state")),
    JOB_SECONDS: About("summary", "Time from start to end of jobs that have ended.", ("kind", "state")),
    OLDEST: About("gauge", "How long the job that waits longest has waited."),
    QUEUE_JOBS: About("gauge", "Jobs that wait in a queue.", ("queue",)),
    QUEUE_SECONDS: About("gauge", "How long the job that waits longest in a queue has waited.", ("queue",)),
    LEASE_SECONDS: About("gauge", "How long a worker has had the running job that was taken first."),
    LEASE_OVERDUE: About("gauge", "How long ago the worker of a running job should have renewed its lease."),
    ALIASES: About("gauge", "The version an alias stands for.", ("model", "alias")),
}
