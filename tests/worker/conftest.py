import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.worker import processes


@pytest.fixture
def stack(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[processes.Stack]:
    """A stack on each dialect, with the Redis of the module. Tests on it end all their jobs."""
    made = processes.Stack(processes.settings(database_url, redis_url, tmp_path), tmp_path)
    yield made
    made.stop()


@pytest.fixture
def postgres_stack(postgres_url: str, redis_url: str, tmp_path: Path) -> Iterator[processes.Stack]:
    """A stack with a database server, whose clock need not be that of the workers."""
    made = processes.Stack(processes.settings(postgres_url, redis_url, tmp_path), tmp_path)
    yield made
    made.stop()


@pytest.fixture
def breakable(
    migrated_sqlite_file: Path, own_redis: services.RedisServer, tmp_path: Path
) -> Iterator[processes.Stack]:
    """A stack of the test's own, whose Redis (`own_redis`) it may stop, kill and start again."""
    path = tmp_path / "tagsmith.db"
    shutil.copyfile(migrated_sqlite_file, path)
    made = processes.Stack(processes.settings(f"sqlite:///{path}", own_redis.url, tmp_path), tmp_path)
    yield made
    made.stop()
