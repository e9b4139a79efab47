"""The metrics response: the metrics of the API processes, and values from SQL."""

import asyncio
import itertools
from collections.abc import Iterable, Iterator

import anyio.to_thread
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from tagsmith.app.metrics import names
from tagsmith.app.metrics.meters import BUCKETS, LatencyHistogram, Totals
from tagsmith.app.metrics.sampler import MetricsSampler
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import job_stats
from tagsmith.core.store.engine import Database

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

#: Interval between saves: the maximum age of the totals of other processes. Far shorter than a scrape interval.
SAVE_INTERVAL_S = 1.0


async def save_periodically(sampler: MetricsSampler) -> None:
    """Save the totals of this process periodically for the other processes, until cancelled."""
    meters = sampler.meters
    while True:
        sampler.sample()
        await anyio.to_thread.run_sync(meters.save, meters.totals.dump())
        await asyncio.sleep(SAVE_INTERVAL_S)


async def exposition(sampler: MetricsSampler, database: Database) -> bytes:
    """Return all metrics in the Prometheus text format."""
    sums = await anyio.to_thread.run_sync(sampler.meters.sum_of_other_processes)
    sampler.sample()
    sums.add(sampler.meters.totals)
    # The processes of a machine share these files, so their sizes must not be added up.
    sums.gauges[names.CACHE_BYTES] = await anyio.to_thread.run_sync(sampler.cached_bytes)
    try:
        stored: job_stats.ServiceStats | None = await anyio.to_thread.run_sync(_stored, database)
    except Unavailable:
        stored = None
    # In a thread: a thousand lines take tens of milliseconds, and other requests should not wait for a scrape.
    return await anyio.to_thread.run_sync(generate_latest, Snapshot(sums, stored))


def _stored(database: Database) -> job_stats.ServiceStats:
    with database.read() as conn:
        return job_stats.read(conn)


class Snapshot(Collector):
    """All metrics of one scrape. `stored` is None if the database is unavailable."""

    def __init__(self, sums: Totals, stored: job_stats.ServiceStats | None) -> None:
        self._sums = sums
        self._stored = stored

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics in output order."""
        yield from _process_metrics(self._sums)
        yield _gauge(names.DATABASE_UP, [((), 0 if self._stored is None else 1)])
        if self._stored is not None:
            yield from _sql_metrics(self._stored)


def _process_metrics(sums: Totals) -> Iterator[Metric]:
    yield _histogram(names.REQUEST_SECONDS, sums)
    for name in names.COUNTERS:
        spec = names.METRICS[name]
        counter = CounterMetricFamily(name, spec.help, labels=spec.labels)
        found = ((labels, value) for (each, labels), value in sums.counters.items() if each == name)
        for labels, value in sorted(found):
            counter.add_metric(labels, value)
        yield counter
    for name in names.GAUGES:
        yield _gauge(name, [((), sums.gauges.get(name, 0))])


def _sql_metrics(stored: job_stats.ServiceStats) -> Iterator[Metric]:
    yield _gauge(names.JOBS, (((each.kind, each.state), each.count) for each in stored.jobs))
    spec = names.METRICS[names.JOB_SECONDS]
    seconds = SummaryMetricFamily(names.JOB_SECONDS, spec.help, labels=spec.labels)
    for each in stored.jobs:
        if each.ended:
            seconds.add_metric((each.kind, each.state), each.ended, each.seconds)
    yield seconds
    yield _gauge(names.OLDEST_QUEUED_SECONDS, [((), stored.oldest_queued_s)])
    yield _gauge(names.QUEUE_JOBS, (((queue.name,), queue.jobs) for queue in stored.queues))
    yield _gauge(names.QUEUE_SECONDS, (((queue.name,), queue.oldest_s) for queue in stored.queues))
    yield _gauge(names.LEASE_SECONDS, [((), stored.oldest_lease_s)])
    yield _gauge(names.LEASE_OVERDUE, [((), stored.lease_overdue_s)])
    yield _gauge(names.ALIAS_VERSION, (((model, alias), version) for model, alias, version in stored.aliases))


def _gauge(name: str, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    spec = names.METRICS[name]
    gauge = GaugeMetricFamily(name, spec.help, labels=spec.labels)
    for labels, value in values:
        gauge.add_metric(labels, value)
    return gauge


def _histogram(name: str, sums: Totals) -> Metric:
    spec = names.METRICS[name]
    family = HistogramMetricFamily(name, spec.help, labels=spec.labels)
    for (each, labels), histogram in sorted(sums.histograms.items(), key=lambda item: item[0]):
        if each == name:
            family.add_metric(labels, _buckets(histogram), histogram.total)
    return family


def _buckets(histogram: LatencyHistogram) -> list[tuple[str, float]]:
    """Return each upper bound with its cumulative number of observations."""
    bounds = [*map(repr, BUCKETS), "+Inf"]
    return list(zip(bounds, itertools.accumulate(histogram.counts), strict=True))
