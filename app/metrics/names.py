"""The names of the metrics, their types, descriptions and labels. `docs/metrics.md` is generated from this table."""

from collections.abc import Mapping
from dataclasses import dataclass

REQUEST_SECONDS = "tagsmith_http_request_duration_seconds"
TAG_REQUESTS = "tagsmith_tag_requests_total"
TAGGED_SENTENCES = "tagsmith_tagged_sentences_total"
TAGGED_TOKENS = "tagsmith_tagged_tokens_total"
CACHE_HITS = "tagsmith_model_cache_hits_total"
CACHE_MISSES = "tagsmith_model_cache_misses_total"
DROPPED_LINES = "tagsmith_log_lines_dropped_total"
CACHE_BYTES = "tagsmith_model_cache_bytes"
OPEN_MODELS = "tagsmith_open_models"
OPEN_STREAMS = "tagsmith_open_streams"
DATABASE_UP = "tagsmith_database_up"
JOBS = "tagsmith_jobs"
JOB_SECONDS = "tagsmith_job_seconds"
OLDEST_QUEUED_SECONDS = "tagsmith_oldest_queued_seconds"
QUEUE_JOBS = "tagsmith_queue_jobs"
QUEUE_SECONDS = "tagsmith_queue_oldest_seconds"
LEASE_SECONDS = "tagsmith_oldest_lease_seconds"
LEASE_OVERDUE = "tagsmith_lease_overdue_seconds"
ALIAS_VERSION = "tagsmith_alias_version"

#: Counters and gauges of the API processes, in output order.
COUNTERS = (TAG_REQUESTS, TAGGED_SENTENCES, TAGGED_TOKENS, CACHE_HITS, CACHE_MISSES, DROPPED_LINES)
GAUGES = (CACHE_BYTES, OPEN_MODELS, OPEN_STREAMS)

#: The value of `route` for a request that matches no route.
NO_ROUTE = "none"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """Type, description and labels of a metric. `source` is "machine" (the scraped machine) or "SQL"."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()
    source: str = "machine"


def _from_sql(kind: str, description: str, *labels: str) -> MetricSpec:
    return MetricSpec(kind, description, labels, "SQL")


METRICS: Mapping[str, MetricSpec] = {
    REQUEST_SECONDS: MetricSpec("histogram", "Duration of HTTP requests.", ("method", "route", "status")),
    TAG_REQUESTS: MetricSpec("counter", "Successful /tag requests.", ("model",)),
    TAGGED_SENTENCES: MetricSpec(
        "counter", "Sentences tagged by /tag; a line of text counts as a sentence.", ("model",)
    ),
    TAGGED_TOKENS: MetricSpec("counter", "Tokens tagged by /tag.", ("model",)),
    CACHE_HITS: MetricSpec("counter", "Model cache hits."),
    CACHE_MISSES: MetricSpec(
        "counter", "Model cache misses: models opened for a request, or preloaded after an alias moved."
    ),
    CACHE_BYTES: MetricSpec(
        "gauge", "Size of the model files on local disk, shared by the processes of the machine."
    ),
    DROPPED_LINES: MetricSpec("counter", "Log lines that were dropped because nobody read them."),
    OPEN_MODELS: MetricSpec("gauge", "Open models; a model that is open in two processes counts twice."),
    OPEN_STREAMS: MetricSpec("gauge", "Open event streams."),
    DATABASE_UP: MetricSpec(
        "gauge", "1 if the database responds, else 0. If 0, all metrics from SQL are missing."
    ),
    JOBS: _from_sql("gauge", "Stored jobs.", "kind", "state"),
    JOB_SECONDS: _from_sql("summary", "Duration of finished jobs, from start to end.", "kind", "state"),
    OLDEST_QUEUED_SECONDS: _from_sql(
        "gauge", "Waiting time of the oldest queued job; 0 if none. It grows when no worker is running."
    ),
    QUEUE_JOBS: _from_sql("gauge", "Queued jobs.", "queue"),
    QUEUE_SECONDS: _from_sql("gauge", "Waiting time of the oldest queued job of a queue.", "queue"),
    LEASE_SECONDS: _from_sql("gauge", "Run time of the job that has been running longest; 0 if none."),
    LEASE_OVERDUE: _from_sql(
        "gauge",
        "Time since the oldest expired lease expired; 0 if none. If it exceeds a few times TAGSMITH_REAPER_SECONDS, no "
        "worker is free to take over.",
    ),
    ALIAS_VERSION: _from_sql("gauge", "Version that an alias points to.", "model", "alias"),
}
