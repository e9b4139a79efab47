"""A short contract test: some valid and invalid requests to every route of the OpenAPI document, with all checks.

`make fuzz` runs longer, with workers, the edges of every schema and sequences of requests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tagsmith.core.service.settings import Settings
from tagsmith.core.store import keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tests.app.servers import ThreadServer
from tests.contract.run import run
from tests.contract.seeds import plant

#: Deterministic, so that a failure is caused by a change.
ARGUMENTS = (
    "--phases",
    "examples,fuzzing",
    "--max-examples",
    "3",
    "--generation-deterministic",
    "--no-color",
)


@pytest.fixture
def token(postgres_url: str) -> Iterator[str]:
    database = Database(postgres_url)
    with database.write() as conn:
        made = keys.create(conn, "contract", [Scope.ADMIN])[1]
    yield made
    database.dispose()


def test_every_route_keeps_to_the_document(
    postgres_url: str, redis_url: str, token: str, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data", database_url=postgres_url, redis_url=redis_url)
    with ThreadServer(settings) as server:
        server.ready()
        seeds = plant(server.url, token, workers=False)
        outcome = run(server.url, seeds, tmp_path, ARGUMENTS, token)
    assert outcome.code == 0, "see the output of schemathesis"
    assert outcome.never_requested == []
