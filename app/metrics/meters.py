"""Counters of one API process, kept where the other processes of the machine find them.

The processes share a port, so a scrape reaches any one of them and must be answered for all. Each process has a slot, a
file in the data directory that it alone writes, once a second. Whoever is scraped adds its own figures, fresh, to those
in the other slots. A process that takes the slot of one that ended goes on from its figures: counters never fall.
"""

import contextlib
import fcntl
import itertools
import logging
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

logger = logging.getLogger(__name__)

#: Seconds; from a tag of one sentence to an upload of the largest corpus.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
#: More processes than any machine runs.
SLOTS = 4096

#: Name and values of the labels.
Series = tuple[str, tuple[str, ...]]


@dataclass(slots=True)
class Histogram:
    """How often something took how long: a count a bucket, the last for what took longer, and the sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Add one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def add(self, other: "Histogram") -> None:
        """Add all of another."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


@dataclass(slots=True)
class Figures:
    """What was counted. Gauges are only of processes that run."""

    counters: dict[Series, float] = field(default_factory=dict)
    histograms: dict[Series, Histogram] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)

    def add(self, other: "Figures") -> None:
        """Add all of another process."""
        for series, value in other.counters.items():
            self.counters[series] = self.counters.get(series, 0) + value
        for series, histogram in other.histograms.items():
            self.histograms.setdefault(series, Histogram()).add(histogram)
        for name, level in other.gauges.items():
            self.gauges[name] = self.gauges.get(name, 0) + level

    def dump(self) -> bytes:
        """Write for other processes."""
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
    def load(cls, text: bytes) -> "Figures":
        """Read what another process wrote; nothing when it is another version's, or was never finished."""
        try:
            read: dict[str, Any] = orjson.loads(text)
            if tuple(read["buckets"]) != BUCKETS:
                return cls()
            return cls(
                {(name, tuple(labels)): value for name, labels, value in read["counters"]},
                {
                    (name, tuple(labels)): Histogram(counts, total)
                    for name, labels, counts, total in read["histograms"]
                },
                read["gauges"],
            )
        except (ValueError, KeyError, TypeError):
            return cls()


class Meters:
    """The figures of this process. They are counted on the event loop; files are written and read in threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slot: IO[bytes] | None = None
        self._number = -1
        self.figures = Figures()

    def open(self) -> None:
        """Take a slot, and go on from its figures. Without a place to write, this process counts for itself."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for number in range(SLOTS):
                slot = _held(self._lock_path(number))
                if slot is not None:
                    self._slot, self._number = slot, number
                    with contextlib.suppress(FileNotFoundError):
                        before = Figures.load(self._path(number).read_bytes())
                        before.gauges = {}
                        self.figures.add(before)
                    return
        except OSError as error:
            logger.warning("metrics are of this process only", extra={"reason": str(error)})

    def close(self) -> None:
        """Leave the slot to another process."""
        self.save(self.figures.dump())
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    def count(self, name: str, *labels: str, amount: float = 1) -> None:
        """Add to a counter."""
        series = (name, labels)
        self.figures.counters[series] = self.figures.counters.get(series, 0) + amount

    def observe(self, name: str, *labels: str, seconds: float) -> None:
        """Add to a histogram."""
        series = (name, labels)
        histogram = self.figures.histograms.get(series)
        if histogram is None:
            histogram = self.figures.histograms[series] = Histogram()
        histogram.observe(seconds)

    def save(self, dumped: bytes) -> None:
        """Show the other processes where this one stands."""
        if self._slot is None:
            return
        draft = self._path(self._number).with_suffix(".draft")
        try:
            draft.write_bytes(dumped)
            draft.replace(self._path(self._number))
        except OSError as error:
            logger.warning("metrics not saved", extra={"reason": str(error)})

    def others(self) -> Figures:
        """The figures of all other processes together."""
        sums = Figures()
        for number, path in self._others():
            with contextlib.suppress(OSError):
                other = Figures.load(path.read_bytes())
                ended = _held(self._lock_path(number))
                if ended is not None:
                    ended.close()
                    other.gauges = {}
                sums.add(other)
        return sums

    def _others(self) -> Iterator[tuple[int, Path]]:
        if self._slot is None:
            return
        # Slots are taken from the first on, so the first that never was ends the row.
        for number in itertools.takewhile(lambda n: self._lock_path(n).exists(), range(SLOTS)):
            if number != self._number:
                yield number, self._path(number)

    def _path(self, number: int) -> Path:
        return self._folder / f"slot-{number}.json"

    def _lock_path(self, number: int) -> Path:
        return self._folder / f"slot-{number}.lock"


def _held(path: Path) -> IO[bytes] | None:
    """Take a lock that the kernel drops with the process, None when another process has it."""
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock
