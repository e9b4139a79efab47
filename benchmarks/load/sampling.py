"""Samples of a running stack: memory and handles of each process, connections, and rows of each table."""

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from tagsmith.core.store import tables
from tagsmith.core.store.engine import Database

INTERVAL_S = 5.0
MIB = 1 << 20
#: Share of a run that is warm-up: caches fill and kernels are loaded.
WARM_UP = 1 / 3


class Sampler(threading.Thread):
    """Takes a sample every few seconds until it is stopped."""

    def __init__(self, supervisor_pid: int, data_dir: Path, database_url: str) -> None:
        super().__init__(daemon=True)
        self._supervisor = psutil.Process(supervisor_pid)
        self._data_dir = data_dir
        self._database = Database(database_url)
        self._stopped = threading.Event()
        #: Minutes and value, by what was measured.
        self.memory_mb: dict[str, list[tuple[float, float]]] = {}
        self.handles: dict[str, list[tuple[float, float]]] = {}
        self.connections: list[tuple[float, float]] = []
        self.rows: dict[str, list[tuple[float, float]]] = {}
        self.data_mb: list[tuple[float, float]] = []
        self._began = time.monotonic()

    def run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            self.sample()
        self._database.dispose()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def sample(self) -> None:
        minute = (time.monotonic() - self._began) / 60
        names = _names(self._data_dir / "run")
        for each in (self._supervisor, *self._supervisor.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                name = "supervisor" if each == self._supervisor else names.get(each.pid)
                if name is not None:
                    self.memory_mb.setdefault(name, []).append((minute, each.memory_info().rss / MIB))
                    self.handles.setdefault(name, []).append((minute, each.num_fds()))
        with self._database.read() as conn:
            for table in tables.metadata.sorted_tables:
                count = conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                self.rows.setdefault(table.name, []).append((minute, count))
            if conn.dialect.name == "postgresql":
                used = conn.execute(
                    sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL")
                )
                self.connections.append((minute, used.scalar_one()))
        self.data_mb.append((minute, _size(self._data_dir) / MIB))


def _names(run: Path) -> dict[int, str]:
    """The children of the supervisor by process id, from their pid files."""
    found = {}
    for path in run.glob("*.pid"):
        with contextlib.suppress(OSError, ValueError):
            found[int(json.loads(path.read_text())[0])] = path.stem
    return found


def _size(folder: Path) -> int:
    """The bytes of all files but the log, which has a line per request."""
    size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            size += path.stat().st_size if path.is_file() and path.name != "stack.log" else 0
    return size


def summary(series: list[tuple[float, float]]) -> dict[str, Any]:
    """First, last and largest value, and the slope per minute after the warm-up."""
    values = [value for _, value in series]
    return {
        "first": round(values[0], 1),
        "last": round(values[-1], 1),
        "most": round(max(values), 1),
        "slope_per_minute": slope(series),
    }


def slope(series: list[tuple[float, float]]) -> float | None:
    """Least squares over the samples after the warm-up; None if there are too few."""
    end = series[-1][0]
    kept = [(x, y) for x, y in series if x >= end * WARM_UP]
    if len(kept) < 3:
        return None
    mean_x = sum(x for x, _ in kept) / len(kept)
    mean_y = sum(y for _, y in kept) / len(kept)
    spread = sum((x - mean_x) ** 2 for x, _ in kept)
    return round(sum((x - mean_x) * (y - mean_y) for x, y in kept) / spread, 3) if spread else None
