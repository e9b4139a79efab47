"""Metrics as text: what the processes counted, and what SQL knows."""

import asyncio
import itertools
from collections.abc import Iterator

import anyio.to_thread

from app.metrics import names
from app.metrics.meters import BUCKETS, Figures, Histogram
from app.metrics.readings import Readings
from core.errors import Unavailable
from core.store import figures
from core.store.engine import Database

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: How old the figures of another process may be in an answer; far less than the time between two scrapes.
SAVE_S = 1.0


async def keep_saved(readings: Readings) -> None:
    """Show the other processes where this one stands, until cancelled."""
    meters = readings.meters
    while True:
        readings.take()
        await anyio.to_thread.run_sync(meters.save, meters.figures.dump())
        await asyncio.sleep(SAVE_S)


async def exposition(readings: Readings, database: Database) -> str:
    """Write all metrics in Prometheus's text format."""
    sums = await anyio.to_thread.run_sync(readings.meters.others)
    readings.take()
    sums.add(readings.meters.figures)
    # Of the machine, not of a process: the files are shared, so sizes must not be added up.
    sums.gauges[names.CACHE_BYTES] = await anyio.to_thread.run_sync(readings.cached_bytes)
    try:
        stored: figures.Figures | None = await anyio.to_thread.run_sync(_stored, database)
    except Unavailable:
        stored = None
    return "".join(itertools.chain(_counted(sums), _known(stored)))


def _stored(database: Database) -> figures.Figures:
    with database.read() as conn:
        return figures.read(conn)


def _counted(sums: Figures) -> Iterator[str]:
    yield _heading(names.REQUESTS)
    for (name, labels), histogram in sorted(sums.histograms.items(), key=lambda item: item[0]):
        yield from _histogram(name, labels, histogram)
    for counter in names.COUNTERS:
        yield _heading(counter)
        found = [(labels, value) for (name, labels), value in sums.counters.items() if name == counter]
        yield from (_line(counter, labels, value) for labels, value in sorted(found))
    for gauge in names.GAUGES:
        yield _heading(gauge)
        yield _line(gauge, (), sums.gauges.get(gauge, 0))


def _known(stored: figures.Figures | None) -> Iterator[str]:
    yield _heading(names.DATABASE)
    yield _line(names.DATABASE, (), 0 if stored is None else 1)
    if stored is None:
        return
    yield _heading(names.JOBS)
    for each in stored.jobs:
        yield _line(names.JOBS, (each.kind, each.state), each.count)
    yield _heading(names.JOB_SECONDS)
    for each in stored.jobs:
        if each.ended:
            yield _line(names.JOB_SECONDS, (each.kind, each.state), each.seconds, suffix="_sum")
            yield _line(names.JOB_SECONDS, (each.kind, each.state), each.ended, suffix="_count")
    yield _heading(names.OLDEST)
    yield _line(names.OLDEST, (), stored.oldest_queued_s)
    yield _heading(names.QUEUE_JOBS)
    for queue in stored.queues:
        yield _line(names.QUEUE_JOBS, (queue.name,), queue.jobs)
    yield _heading(names.QUEUE_SECONDS)
    for queue in stored.queues:
        yield _line(names.QUEUE_SECONDS, (queue.name,), queue.oldest_s)
    yield _heading(names.LEASE_SECONDS)
    yield _line(names.LEASE_SECONDS, (), stored.oldest_lease_s)
    yield _heading(names.LEASE_OVERDUE)
    yield _line(names.LEASE_OVERDUE, (), stored.lease_overdue_s)
    yield _heading(names.ALIASES)
    for model, alias, version in stored.aliases:
        yield _line(names.ALIASES, (model, alias), version)


def _histogram(name: str, labels: tuple[str, ...], histogram: Histogram) -> Iterator[str]:
    bounds = [*map(repr, BUCKETS), "+Inf"]
    for bound, count in zip(bounds, itertools.accumulate(histogram.counts), strict=True):
        yield _line(name, labels, count, suffix="_bucket", le=bound)
    yield _line(name, labels, histogram.total, suffix="_sum")
    yield _line(name, labels, sum(histogram.counts), suffix="_count")


def _heading(name: str) -> str:
    about = names.ABOUT[name]
    return f"# HELP {name} {about.help}\n# TYPE {name} {about.kind}\n"


def _line(name: str, labels: tuple[str, ...], value: float, *, suffix: str = "", **more: str) -> str:
    pairs = [*zip(names.ABOUT[name].labels, labels, strict=True), *more.items()]
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in pairs)
    return (
        f"{name}{suffix}{{{inside}}} {_number(value)}\n" if inside else f"{name}{suffix} {_number(value)}\n"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """All digits: counters grow beyond the six that are usual."""
    return str(int(value)) if value == int(value) else repr(value)
