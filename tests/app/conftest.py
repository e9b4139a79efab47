"""A running API on each database, for all tests of `app`; and a browser, for those of the page."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from tagsmith.client import Client
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import tables
from tagsmith.core.store.engine import Database
from tests.app.browser import Browser, Tab
from tests.app.servers import ThreadServer

#: Limits small enough to test at the edge without large inputs.
SMALL = {"max_upload_bytes": 200_000, "max_corpus_bytes": 1_000_000, "max_json_bytes": 300_000,
         "max_line_bytes": 1_000, "max_tag_sentences": 1_000, "max_tag_tokens": 5_000}  # fmt: skip


@pytest.fixture(scope="module")
def settings(database_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(
        data_dir=tmp_path_factory.mktemp("data"), database_url=database_url, redis_url=redis_url, **SMALL
    )


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[ThreadServer]:
    with ThreadServer(settings) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: ThreadServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def client(server: ThreadServer) -> Iterator[Client]:
    with Client(server.url, retries=0) as made:  # what the server refuses is what these tests are about
        yield made


@pytest.fixture(scope="module")
def database(settings: Settings) -> Iterator[Database]:
    made = Database(settings.database_url)
    yield made
    made.dispose()


class Stored:
    """Counts of all that is stored, to show that a refused request stored nothing."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self._database = database
        self._data_dir = data_dir

    def counts(self) -> dict[str, int]:
        with self._database.read() as conn:
            rows = {
                table.name: int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
                for table in tables.metadata.sorted_tables
            }
        spool = self._data_dir / "spool"
        return {**rows, "spool files": len(list(spool.iterdir())) if spool.exists() else 0}


@pytest.fixture
def unchanged(database: Database, settings: Settings) -> Iterator[None]:
    """Assert that the test leaves every table and the spool folder as it found them."""
    stored = Stored(database, settings.data_dir)
    before = stored.counts()
    yield
    assert stored.counts() == before


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    opened = browser.tab()
    yield opened
    opened.close()
    # What the server refuses is logged by the browser itself; nothing else may go wrong.
    refusals = [each for each in opened.complaints if "the server responded with a status of 4" in each]
    assert opened.complaints == refusals


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests store what they saw. Set TAGSMITH_TEST_PICTURES to keep the files."""
    kept = os.environ.get("TAGSMITH_TEST_PICTURES")
    return Path(kept) if kept else tmp_path_factory.mktemp("pictures")
