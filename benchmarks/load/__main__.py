"""A mixed load on a whole stack: does anything grow, does anything fail?

    python -m benchmarks.load --minutes 30 [--database sqlite] [--seed 7]

Callers tag requests of several sizes, upload, inspect and delete corpora, train, promote and roll back, follow event
streams, and read lists, metrics and models. Every five seconds the memory and the open files of each process, the
connections of the database and the rows of each table are sampled. Slopes are least squares over the last two thirds
of the run. The run fails if a response has a status of 500 or more, or if there is no response.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks import common
from benchmarks.load import sampling, traffic
from tagsmith.app.cli.background import BackgroundStack
from tagsmith.core.service.settings import Settings
from tests.services import PostgresServer

#: Bars of the project: megabytes per minute of one process, after the warm-up.
MAX_SLOPE_MB = 1.0
#: So small that it is full when the warm-up ends: every training makes another model file.
CACHE_BYTES = 16 << 20
#: These tables are a record. They grow with every change, and settings say for how long.
RECORDS = {
    "audit": "`TAGSMITH_KEEP_AUDIT_DAYS`",
    "kept_answer": "24 hours",
    "alias_move": "the life of the model",
}


def measured(stack: BackgroundStack, seconds: float, seed: int) -> dict[str, Any]:
    """Run the load against a stack."""
    corpus = traffic.prepare(stack.url)
    sampler = sampling.Sampler(stack.pid, stack.settings.data_dir, stack.settings.database_url)
    sampler.start()
    began = time.monotonic()
    record = traffic.run(stack.url, corpus, seconds, seed)
    took = time.monotonic() - began
    sampler.sample()
    sampler.stop()
    return {
        "seconds": round(took, 1),
        "calls": {kind: _times(record, kind) for kind in sorted(record.seconds)},
        "calls_per_second": round(sum(map(len, record.seconds.values())) / took, 1),
        "failures": _failures(record),
        "refusals": dict(sorted(record.refusals.items())),
        "jobs": dict(record.jobs),
        "memory_mb": {name: sampling.summary(each) for name, each in sorted(sampler.memory_mb.items())},
        "handles": {name: sampling.summary(each) for name, each in sorted(sampler.handles.items())},
        "connections": sampling.summary(sampler.connections) if sampler.connections else None,
        "rows": {name: sampling.summary(each) for name, each in sorted(sampler.rows.items())},
        "data_directory_mb": sampling.summary(sampler.data_mb),
    }


def _times(record: traffic.Record, kind: str) -> dict[str, Any]:
    seconds = record.seconds[kind]
    parts = quantiles(seconds, n=100) if len(seconds) > 1 else seconds * 99
    return {
        "calls": len(seconds),
        "ms_p50": round(parts[49] * 1_000, 1),
        "ms_p99": round(parts[98] * 1_000, 1),
        "statuses": dict(sorted(record.statuses[kind].items())),
    }


def _failures(record: traffic.Record) -> int:
    """Responses of 500 and more, and calls without a response."""
    counts = (item for counter in record.statuses.values() for item in counter.items())
    return sum(count for status, count in counts if not status.isdigit() or int(status) >= 500)


def page(result: dict[str, Any]) -> str:
    """The result as a page."""
    lines = ["# Load", "", *_heading(result), ""]
    lines += ["| call | calls | p50, ms | p99, ms | statuses |", "|---|---|---|---|---|"]
    for kind, row in result["calls"].items():
        statuses = ", ".join(f"{status}: {count:,}" for status, count in row["statuses"].items())
        lines.append(f"| {kind} | {row['calls']:,} | {row['ms_p50']} | {row['ms_p99']} | {statuses} |")
    lines += ["", "Slopes are per minute, over the last two thirds of the run."]
    lines += _table("memory, MB", result["memory_mb"])
    lines += _table("open files", result["handles"])
    others = {"data directory, MB": result["data_directory_mb"]}
    if result["connections"] is not None:
        others["database connections"] = result["connections"]
    lines += _table("stack", others)
    lines += _table("rows", {name: row for name, row in result["rows"].items() if row["most"]})
    lines += ["", f"These tables keep a record: {', '.join(f'`{n}` ({why})' for n, why in RECORDS.items())}."]
    return "\n".join(lines) + "\n"


def _heading(result: dict[str, Any]) -> list[str]:
    """The command, the machine, and the figures of the whole run."""
    about = result["machine"]
    command = f"python -m benchmarks.load --minutes {result['seconds'] / 60:.0f}"
    jobs = ", ".join(f"{count} {state}" for state, count in result["jobs"].items())
    return [
        f"`{command} --database {result['database']} --seed {result['seed']}` at commit {result['commit']}.",
        f"{about['at']}, {about['cpu']}, {about['cores']} cores, load average {about['load_average'][1]},",
        f"Python {about['python']}. {result['calls_per_second']} calls per second.",
        f"Failures (status 500 or more, or no response): {result['failures']}. Jobs: {jobs}.",
    ]


def _table(title: str, rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["", f"| {title} | first | last | most | slope |", "|---|---|---|---|---|"]
    for name, row in rows.items():
        slope = "" if row["slope_per_minute"] is None else f"{row['slope_per_minute']:+.2f}"
        lines.append(f"| {name} | {row['first']:g} | {row['last']:g} | {row['most']:g} | {slope} |")
    return lines


def _commit() -> str:
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=common.RESULTS.parent)
    return done.stdout.strip() or "unknown"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (30)")
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--seed", type=int, default=7, help="of the choices of the callers (7)")
    parser.add_argument("--data", type=Path, help="not needed: the corpora are generated")
    return parser.parse_args()


def main() -> None:
    asked = options()
    server = PostgresServer() if asked.database == "postgres" else None
    try:
        given: dict[str, Any] = {
            "port": 0,
            "api_processes": 2,
            "workers": 2,
            "model_cache_bytes": CACHE_BYTES,
        }
        if server is not None:
            server.start()
            given["database_url"] = server.url
        with tempfile.TemporaryDirectory() as folder:
            stack = BackgroundStack(Settings.from_env({}, {**given, "data_dir": Path(folder) / "data"}))
            with stack:
                result = measured(stack, asked.minutes * 60, asked.seed)
    finally:
        if server is not None:
            server.stop()
    written = {"commit": _commit(), "database": asked.database, "seed": asked.seed, **result}
    path = common.record("load", written)
    text = page({"machine": common.machine(), **written})
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    growing = {
        name: row["slope_per_minute"]
        for name, row in result["memory_mb"].items()
        if (row["slope_per_minute"] or 0) > MAX_SLOPE_MB
    }
    if growing:
        print(f"Memory grew by more than {MAX_SLOPE_MB:g} MB per minute: {growing}")
    if result["failures"]:
        raise SystemExit(f"{result['failures']} calls failed: {result['refusals']}")


if __name__ == "__main__":
    main()
