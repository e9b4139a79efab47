"""Test the contract at length: every route of the OpenAPI document, on both databases, with keys and without.

    python -m tests.contract [--examples 200] [--database postgres] [--keys on]

A whole stack of its own for each: schemathesis tries the examples of the document, the edges of its schemas, random
requests, valid and not, and sequences of requests that belong together, and checks each answer in every way it knows.
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from app.cli.background import BackgroundStack
from core.settings import ANYONE, Settings
from core.store import keys, migrate
from core.store.engine import Database
from core.store.keys import Scope
from tests.contract.run import Outcome, run
from tests.contract.seeds import plant
from tests.services import PostgresServer

#: No answer takes so long; one that does is a fault.
TIMEOUT_S = 30
#: What nobody may do where there are no keys.
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
    """Make a key that may do everything, and so put keys in force."""
    settings.data_dir.mkdir(parents=True)
    migrate.upgrade(settings.database_url)
    database = Database(settings.database_url)
    with database.write() as conn:
        token = keys.create(conn, "contract", [Scope.ADMIN])[1]
    database.dispose()
    return token


def test(database: str, keyed: str, arguments: list[str]) -> Outcome:
    """Run schemathesis against a stack."""
    with tempfile.TemporaryDirectory() as name, database_of(database) as given:
        folder = Path(name)
        overrides = {"port": 0, "data_dir": folder / "data", "workers": 1, **given}
        settings = Settings.from_env({}, overrides if keyed == "on" else {**overrides, "access": ANYONE})
        key = first_key(settings) if keyed == "on" else None
        with BackgroundStack(settings) as stack:
            return run(stack.url, plant(stack.url, key, workers=True), folder, arguments, key)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=200, help="random requests a route (200)")
    parser.add_argument("--database", choices=("postgres", "sqlite"), help="both if not given")
    parser.add_argument("--keys", choices=("on", "off"), help="both if not given")
    parser.add_argument("rest", nargs="*", help="further arguments of schemathesis, behind --")
    options = parser.parse_args()
    arguments = ["--max-examples", str(options.examples), "--request-timeout", str(TIMEOUT_S)]
    arguments += ["--continue-on-failure", *options.rest]
    failed = []
    for database in [options.database] if options.database else ["postgres", "sqlite"]:
        for keyed in [options.keys] if options.keys else ["off", "on"]:
            print(f"\n{database}, keys {keyed}", flush=True)
            outcome = test(database, keyed, arguments)
            untested = [name for name in outcome.never_accepted if keyed == "on" or name not in NEED_KEYS]
            print(f"{database}, keys {keyed}: {outcome.requests} requests; never accepted: {untested}")
            if outcome.code or untested:
                failed.append(f"{database}, keys {keyed}")
    print(f"failed: {'; '.join(failed)}" if failed else "no failure")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
