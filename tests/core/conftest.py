"""One database per module, on each dialect. Tests create their own rows and do not see those of others."""

from collections.abc import Iterator

import pytest

from tagsmith.core.store.engine import Database


@pytest.fixture(scope="module")
def db(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.dispose()
