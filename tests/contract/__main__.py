"""A long contract test: every route of the OpenAPI document, on both databases, with and without keys.

    python -m tests.contract [--examples 200] [--database postgres] [--keys on]

Each combination has its own stack. Schemathesis sends the examples of the document, the edges of its schemas, random
valid and invalid requests, and sequences of related requests, and applies all its checks to each response.
"""

import argparse
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.service import queues
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store import keys, migrate
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tagsmith.wire import Job
from tests.contract.run import Outcome, run
from tests.contract.seeds import plant
from tests.services import PostgresServer

#: A response that takes longer is a failure.
TIMEOUT_S = 30
#: Errors of jobs that should not have been accepted, or that broke their worker.
DEFECTS = frozenset({"internal_error", "worker_lost"})
#: Operations that are refused without keys.
NEED_KEYS = ("POST /keys", "GET /keys/{key_id}", "DELETE /keys/{key_id}")


@contextlib.contextmanager
def database_of(kind: str) -> Iterator[dict[str, str]]:
    """The settings of a database of that kind."""
    if kind == "sqlite":
        yield {}
        return
    server = PostgresServer()
    try:
        server.start()
        yield {"database_url": server.url}
    finally:
        server.stop()


def first_key(settings: Settings) -> str:
    """Create a key with all scopes. From then on, keys are required."""
    settings.data_dir.mkdir(parents=True)
    migrate.upgrade(settings.database_url)
    database = Database(settings.database_url)
    with database.write() as conn:
        token = keys.create(conn, "contract", [Scope.ADMIN])[1]
    database.dispose()
    return token


@dataclass(frozen=True, slots=True)
class JobOutcomes:
    """The outcomes of the jobs that requests created."""

    #: Number of jobs by ending.
    endings: Counter[str]
    #: The error of one failed job per code.
    reasons: dict[str, str]
    #: Jobs that failed because of a defect.
    defects: list[str]

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> "JobOutcomes":
        endings: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        defects = []
        for job in jobs:
            code = "" if job.error is None else job.error["code"]
            endings[f"{job.state} {code}".strip()] += 1
            if code:
                reasons.setdefault(
                    code, f"{orjson.dumps(job.error).decode()} {orjson.dumps(job.spec).decode()}"
                )
            if code in DEFECTS:
                defects.append(f"{job.id} {code} {orjson.dumps(job.spec).decode()}")
        return cls(endings, reasons, defects)


def test(database: str, keyed: str, arguments: list[str]) -> tuple[Outcome, JobOutcomes]:
    """Run schemathesis against a stack; return its outcome and those of the jobs."""
    with tempfile.TemporaryDirectory() as name, database_of(database) as given:
        folder = Path(name)
        overrides = {
            "port": 0,
            "data_dir": folder / "data",
            "workers": 1,
            "worker_queues": queues.QUICK,
            **given,
        }
        settings = Settings.from_env({}, overrides if keyed == "on" else {**overrides, "access": ANYONE})
        key = first_key(settings) if keyed == "on" else None
        with BackgroundStack(settings) as stack:
            outcome = run(stack.url, plant(stack.url, key, workers=True), folder, arguments, key)
            with Client(stack.url, key=key) as client:
                worked = JobOutcomes.of(client.jobs())
        print(*_tracebacks(stack.log_path), sep="\n")
    return outcome, worked


def _tracebacks(log: Path) -> list[str]:
    """Return the tracebacks in the log of the stack."""
    return [line for line in log.read_text(encoding="utf-8").splitlines() if "Traceback" in line]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=200, help="random requests per route (200)")
    parser.add_argument("--database", choices=("postgres", "sqlite"), help="both if not given")
    parser.add_argument("--keys", choices=("on", "off"), help="both if not given")
    parser.add_argument("rest", nargs="*", help="further arguments of schemathesis, after --")
    options = parser.parse_args()
    arguments = ["--max-examples", str(options.examples), "--request-timeout", str(TIMEOUT_S)]
    arguments += ["--continue-on-failure", *options.rest]
    failed = []
    for database in [options.database] if options.database else ["postgres", "sqlite"]:
        for keyed in [options.keys] if options.keys else ["off", "on"]:
            name = f"{database}, keys {keyed}"
            print(f"\n{name}", flush=True)
            outcome, worked = test(database, keyed, arguments)
            untested = [each for each in outcome.never_accepted if keyed == "on" or each not in NEED_KEYS]
            print(outcome.report())
            print("jobs:", ", ".join(f"{count:,} {ending}" for ending, count in worked.endings.most_common()))
            print(*(f"failed for example: {each}" for each in worked.reasons.values()), sep="\n")
            print(*(f"failed because of a defect: {each}" for each in worked.defects), sep="\n")
            print(f"{name}: {outcome.requests:,} requests; never accepted: {', '.join(untested) or 'none'}")
            if outcome.code or untested or worked.defects:
                failed.append(name)
    print(f"failed: {'; '.join(failed)}" if failed else "no failure")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
