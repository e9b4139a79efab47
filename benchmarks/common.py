"""Shared code of the benchmarks: data, timing, and the description of the machine."""

import gzip
import json
import lzma
import os
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import measured

RESULTS = Path(__file__).parent / "results"


def read(path: Path) -> bytes:
    """A corpus file, plain or compressed."""
    for suffix, opener in ((".xz", lzma.open), (".gz", gzip.open)):
        packed = path.with_name(path.name + suffix)
        if packed.exists():
            with opener(packed) as source:
                return bytes(source.read())
    return path.read_bytes()


def alternate(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Run the contenders in turn, so that a noisy neighbour disturbs all alike. Each returns its seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(run())
    return seconds


def timed(function: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def summary(seconds: dict[str, list[float]], ours: str) -> dict[str, Any]:
    """Return medians, and per contender the median of its time relative to ours within a round."""
    return {
        name: {
            "seconds_median": median(values),
            "seconds_all": [round(value, 4) for value in values],
            "times_ours": round(median(v / o for v, o in zip(values, seconds[ours], strict=True)), 2),
        }
        for name, values in seconds.items()
    }


def machine() -> dict[str, Any]:
    """Describe the machine and the versions with which a figure was measured."""
    packages = {}
    for name in ("numba", "llvmlite", "numpy", "python-crfsuite", "fastapi", "uvicorn", "pydantic"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "python": platform.python_version(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "packages": packages,
    }


def moment() -> dict[str, Any]:
    """Return the time and the load of the machine. Parts of a result can be measured at different times."""
    return {key: value for key, value in machine().items() if key in ("at", "load_average")}


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def recorded(name: str) -> dict[str, Any]:
    """Return the recorded result, for benchmarks whose parts run separately; empty if there is none."""
    path = RESULTS / f"{name}.json"
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    result.pop("machine", None)
    return result


def record(name: str, result: dict[str, Any]) -> Path:
    """Replace the result of this name, and update the pages that quote it."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **result}, indent=2, ensure_ascii=False) + "\n")
    measured.write_pages()
    return path
