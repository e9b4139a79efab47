"""One database a module, on each dialect; tests make their own rows and do not see those of others."""

from collections.abc import Iterator

import pytest

from core.store.engine import Database


@pytest.fixture(scope="module")
def db(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.dispose()
