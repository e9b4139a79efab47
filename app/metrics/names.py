"""The names of the metrics, their types, descriptions and labels. `docs/metrics.md` is generated from this table."""

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

#: Counters and gauges of the API processes, in output order.
COUNTERS = (TAGGED, SENTENCES, TOKENS, CACHE_HITS, CACHE_MISSES)
GAUGES = (CACHE_BYTES, OPEN_MODELS, STREAMS)

#: The value of `route` for a request that matches no route.
NO_ROUTE = "none"


@dataclass(frozen=True, slots=True)
class About:
    """Type, description and labels of a metric. `source` is "machine" (the scraped machine) or "SQL"."""

    kind: str
    help: str
    labels: tuple[str, ...] = ()
    source: str = "machine"


def _sql(kind: str, description: str, *labels: str) -> About:
    return About(kind, description, labels, "SQL")


ABOUT: Mapping[str, About] = {
    REQUESTS: About("histogram", "Duration of HTTP requests.", ("method", "route", "status")),
    TAGGED: About("counter", "Successful /tag requests.", ("model",)),
    SENTENCES: About("counter", "Sentences tagged by /tag; a line of text counts as a sentence.", ("model",)),
    TOKENS: About("counter", "Tokens tagged by /tag.", ("model",)),
    CACHE_HITS: About("counter", "Model cache hits."),
    CACHE_MISSES: About("counter", "Models opened, for a request or ahead of it because an alias moved."),
    CACHE_BYTES: About(
        "gauge", "Size of the model files on local disk, shared by the processes of the machine."
    ),
    OPEN_MODELS: About("gauge", "Open models; a model that is open in two processes counts twice."),
    STREAMS: About("gauge", "Open event streams."),
    DATABASE: About("gauge", "1 if the database answered, else 0; then all metrics from SQL are missing."),
    JOBS: _sql("gauge", "Stored jobs.", "kind", "state"),
    JOB_SECONDS: _sql("summary", "Duration of finished jobs, from start to end.", "kind", "state"),
    OLDEST: _sql("gauge", "Waiting time of the oldest queued job; grows when no worker is running."),
    QUEUE_JOBS: _sql("gauge", "Queued jobs.", "queue"),
    QUEUE_SECONDS: _sql("gauge", "Waiting time of the oldest queued job of a queue.", "queue"),
    LEASE_SECONDS: _sql("gauge", "Age of the oldest lease: how long a worker has had its job."),
    LEASE_OVERDUE: _sql(
        "gauge",
        "Time since the lease of a running job expired. Above a few TAGSMITH_REAPER_SECONDS, no worker is running to "
        "take over the job.",
    ),
    ALIASES: _sql("gauge", "Version that an alias points to.", "model", "alias"),
}
