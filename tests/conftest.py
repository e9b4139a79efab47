"""Fixtures every test may use.

| fixture              | scope    | gives |
|----------------------|----------|-------|
| `redis_url`          | module   | a real Redis, empty when the module begins |
| `own_redis`          | function | a `RedisServer` of the test's own, to stop, kill and start again |
| `postgres_url`       | module   | a fresh, migrated PostgreSQL database |
| `sqlite_url`         | module   | a fresh, migrated SQLite database |
| `database_url`       | module   | both of them in turn: every test that uses it runs twice |
| `empty_database_url` | function | both in turn, not migrated |
| `stack`              | session  | the whole stack as child processes; tests must not break it |
| `start_stack`        | function | starts stacks with settings of the test's choice, to be broken |
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.core.service.settings import Settings
from tests import services

#: Files that take longest: what begins late with one of these ends late. Those that mostly wait for processes and those
#: that mostly compute take turns, since they go well beside each other.
LONGEST = (
    "drills/test_drills.py",
    "worker/test_families.py",
    "docs/test_pages.py",
    "tagsmith/test_wheel.py",
    "core/learn/test_online.py",
    "drills/test_dead_processes.py",
    "drills/test_backup_under_load.py",
    "core/learn/test_sgd_l1.py",
    "worker/test_train.py",
    "core/learn/test_prox_grad.py",
    "worker/test_resume.py",
    "core/learn/test_memory.py",
    "app/test_serving.py",
    "app/test_page_in_browser.py",
    "core/inference/test_chain.py",
    "worker/test_processes.py",
    "core/pipeline/test_warm.py",
    "contract/test_contract.py",
    "core/learn/test_quasi_newton.py",
    "app/test_flat_memory.py",
    "worker/test_experiments.py",
    "drills/test_compose_commands.py",
    "worker/test_limits.py",
    "app/test_metrics.py",
    "drills/test_lost_redis.py",
    "drills/test_event_replay.py",
    "app/test_page_views.py",
    "cli/test_demo.py",
    "docs/test_operating.py",
    "docs/test_jobs.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many processes `--numprocesses auto` means. Each starts services of its own; a given Redis serves one."""
    return 0 if "TAGSMITH_TEST_REDIS_URL" in os.environ else min(os.cpu_count() or 1, 4)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the order within a file stays."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session")
def redis_server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("TAGSMITH_TEST_REDIS_URL")
    if given:
        yield given
        return
    server = services.RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture(scope="module")
def redis_url(redis_server_url: str) -> str:
    with redis.Redis.from_url(redis_server_url) as client:
        client.flushdb()
    return redis_server_url


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[services.RedisServer]:
    server = services.RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[services.Databases]:
    given = os.environ.get("TAGSMITH_TEST_POSTGRES_URL")
    if given:
        databases = services.Databases(given)
        yield databases
        databases.drop_all()
        return
    server = services.PostgresServer()
    try:
        server.start()
        yield services.Databases(server.url)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def migrated_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tagsmith.core.store import migrate

    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate.upgrade(f"sqlite:///{path}")
    # Fold the write-ahead log into the file, so that copying this one file copies everything.
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture(scope="module")
def sqlite_url(migrated_sqlite_file: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("database") / "tagsmith.db"
    shutil.copyfile(migrated_sqlite_file, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def postgres_url(postgres_databases: services.Databases) -> Iterator[str]:
    from tagsmith.core.store import migrate

    address = postgres_databases.create(migrate.upgrade)
    yield address
    postgres_databases.drop(address)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    databases: services.Databases = request.getfixturevalue("postgres_databases")
    address = databases.create()
    yield address
    databases.drop(address)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundStack]:
    overrides = {"port": 0, "data_dir": tmp_path_factory.mktemp("stack"), "reaper_seconds": 0.5}
    settings = Settings.from_env({}, overrides)
    with BackgroundStack(settings) as started:
        yield started


@pytest.fixture
def start_stack(tmp_path: Path) -> Iterator[Callable[..., BackgroundStack]]:
    """Give a function that starts a stack; overrides are fields of `Settings`."""
    started: list[BackgroundStack] = []

    def start(**overrides: object) -> BackgroundStack:
        settings = Settings.from_env({}, {"port": 0, "data_dir": tmp_path / "data", **overrides})
        started.append(BackgroundStack(settings))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.stop()
