"""Counters of one API process, shared with the other API processes of the machine through files.

The processes share a port, so a scrape reaches any one of them and must cover all. Each process has a slot: a file in
the data directory that only this process writes, once per second. The process that is scraped adds its own current
totals to those in the other slots. A new process can take over the slot of a process that ended. It continues the
totals of that slot, so counters never decrease.
"""

import contextlib
import fcntl
import itertools
import logging
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

logger = logging.getLogger(__name__)

#: Upper bounds in seconds. They range from tagging one sentence to uploading the largest corpus.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
#: Maximum number of slots; more than any machine runs processes.
SLOTS = 4096

#: Maximum number of counters, and of histograms, of one process. Labels are names of models, and methods of requests.
MAX_SERIES = 5000
OTHER = "other"

#: Metric name and label values.
Series = tuple[str, tuple[str, ...]]


@dataclass(slots=True)
class LatencyHistogram:
    """Durations: one count per bucket, a last count for longer durations, and the sum in seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Add one duration."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def add(self, other: "LatencyHistogram") -> None:
        """Add the counts of another histogram."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


@dataclass(slots=True)
class Totals:
    """The values of one or several processes. Gauges cover running processes only."""

    counters: dict[Series, float] = field(default_factory=dict)
    histograms: dict[Series, LatencyHistogram] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)

    def add(self, other: "Totals") -> None:
        """Add the values of another process."""
        for series, value in other.counters.items():
            self.counters[series] = self.counters.get(series, 0) + value
        for series, histogram in other.histograms.items():
            self.histograms.setdefault(series, LatencyHistogram()).add(histogram)
        for name, level in other.gauges.items():
            self.gauges[name] = self.gauges.get(name, 0) + level

    def dump(self) -> bytes:
        """Serialise for the other processes."""
        return orjson.dumps(
            {
                "buckets": BUCKETS,
                "counters": [[name, labels, value] for (name, labels), value in self.counters.items()],
                "histograms": [
                    [name, labels, each.counts, each.total]
                    for (name, labels), each in self.histograms.items()
                ],
                "gauges": self.gauges,
            }
        )

    @classmethod
    def load(cls, text: bytes) -> "Totals":
        """Parse the totals that a process saved. Empty if the file is incomplete or its buckets or format differ."""
        try:
            read: dict[str, Any] = orjson.loads(text)
            if tuple(read["buckets"]) != BUCKETS:
                return cls()
            return cls(
                {(name, tuple(labels)): value for name, labels, value in read["counters"]},
                {
                    (name, tuple(labels)): LatencyHistogram(counts, total)
                    for name, labels, counts, total in read["histograms"]
                },
                read["gauges"],
            )
        except (ValueError, KeyError, TypeError):
            return cls()


class Meters:
    """The totals of this process. Only the event loop changes them; threads read and write the files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._slot: IO[bytes] | None = None
        self._number = -1
        self.totals = Totals()

    def open(self) -> None:
        """Take a slot and continue its totals. If the directory is not writable, metrics cover this process only."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            for number in range(SLOTS):
                slot = _try_lock(self._lock_path(number))
                if slot is not None:
                    self._slot, self._number = slot, number
                    with contextlib.suppress(FileNotFoundError):
                        before = Totals.load(self._path(number).read_bytes())
                        before.gauges = {}
                        self.totals.add(before)
                    return
        except OSError as error:
            logger.warning("metrics cover this process only", extra={"reason": str(error)})

    def close(self) -> None:
        """Save the totals and release the slot."""
        self.save(self.totals.dump())
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    def count(self, name: str, *labels: str, amount: float = 1) -> None:
        """Add to a counter."""
        series = _series(self.totals.counters, name, labels)
        self.totals.counters[series] = self.totals.counters.get(series, 0) + amount

    def observe(self, name: str, *labels: str, seconds: float) -> None:
        """Add to a histogram."""
        series = _series(self.totals.histograms, name, labels)
        histogram = self.totals.histograms.get(series)
        if histogram is None:
            histogram = self.totals.histograms[series] = LatencyHistogram()
        histogram.observe(seconds)

    def save(self, dumped: bytes) -> None:
        """Save serialised totals in the slot."""
        if self._slot is None:
            return
        draft = self._path(self._number).with_suffix(".draft")
        try:
            draft.write_bytes(dumped)
            draft.replace(self._path(self._number))
        except OSError as error:
            logger.warning("metrics not saved", extra={"reason": str(error)})

    def sum_of_other_processes(self) -> Totals:
        """Return the sum of the totals of all other processes."""
        sums = Totals()
        for number, path in self._others():
            with contextlib.suppress(OSError):
                other = Totals.load(path.read_bytes())
                ended = _try_lock(self._lock_path(number))
                if ended is not None:
                    ended.close()
                    other.gauges = {}
                sums.add(other)
        return sums

    def _others(self) -> Iterator[tuple[int, Path]]:
        if self._slot is None:
            return
        # Slots are taken in order, so the first missing one is the end.
        for number in itertools.takewhile(lambda n: self._lock_path(n).exists(), range(SLOTS)):
            if number != self._number:
                yield number, self._path(number)

    def _path(self, number: int) -> Path:
        return self._directory / f"slot-{number}.json"

    def _lock_path(self, number: int) -> Path:
        return self._directory / f"slot-{number}.lock"


def _series(known: Mapping[Series, object], name: str, labels: tuple[str, ...]) -> Series:
    """Return the series of some labels. When there are too many, new labels share one."""
    series = (name, labels)
    return series if series in known or len(known) < MAX_SERIES else (name, (OTHER,) * len(labels))


def _try_lock(path: Path) -> IO[bytes] | None:
    """Take a lock that the kernel releases when the process ends. Return None if another process holds it."""
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
