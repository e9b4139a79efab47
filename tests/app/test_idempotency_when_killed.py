"""An API process killed before or after the commit of a change: a repeated request neither loses nor doubles it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tagsmith.app.http.policy import declared
from tagsmith.app.main import create_app
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import clock, keys, tables
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ProcessServer, assert_problem


@dataclass(frozen=True)
class Creation:
    """A request that changes something, and the table that grows with it."""

    path: str
    table: sa.Table
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Prepared:
    """What the requests need: a corpus, a cancelled job, a model with an alias that was moved."""

    def __init__(self, http: httpx.Client, model_path: Path) -> None:
        self.corpus = self._made(http.post("/corpora", content=samples.TEXT))["id"]
        self.job = self._made(http.post("/jobs", json=samples.spec(self.corpus)))["id"]
        self._made(http.post(f"/jobs/{self.job}/cancel"))
        self.model = samples.model_file("x", model_path)
        for number in (1, 2):
            self._made(http.post("/models/m/versions", content=self.model))
            self._made(http.put("/models/m/aliases/champion", json={"version": number}))

    def _made(self, response: httpx.Response) -> Any:
        assert response.is_success, response.text
        return response.json()


#: Every route that takes an `Idempotency-Key`, with a request for it.
CREATIONS: dict[str, Callable[[Prepared], Creation]] = {
    "/corpora": lambda _: Creation("/corpora", tables.corpus, {"content": samples.TEXT}),
    "/lexicons": lambda _: Creation("/lexicons", tables.lexicon, {"content": b"Rome\n"}),
    "/jobs": lambda made: Creation("/jobs", tables.job, {"json": samples.spec(made.corpus)}),
    "/jobs/{job_id}/retry": lambda made: Creation(f"/jobs/{made.job}/retry", tables.job),
    "/models/{name}/versions": lambda made: Creation(
        "/models/m/versions", tables.model_version, {"content": made.model}
    ),
    "/models/{name}/aliases/{alias}/rollback": lambda _: Creation(
        "/models/m/aliases/champion/rollback", tables.alias_move
    ),
    "/keys": lambda _: Creation("/keys", tables.api_key, {"json": {"name": "new", "scopes": ["read"]}}),
}


@pytest.fixture(scope="module")
def http(
    settings: Settings, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    with database.write() as conn:
        _, token = keys.create(conn, "operator", list(keys.Scope))
    log_path = tmp_path_factory.mktemp("log") / "api.log"
    with (
        ProcessServer(settings, log_path, ("tests.app.killed",)) as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def prepared(http: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(http, tmp_path_factory.mktemp("model") / "model")


def rows(database: Database, table: sa.Table) -> int:
    with database.read() as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_every_route_that_takes_a_key_is_tested(settings: Settings) -> None:
    idempotent = {route.path for route in declared(create_app(settings).routes) if route.policy.idempotent}
    assert idempotent == set(CREATIONS)


@pytest.mark.parametrize("path", CREATIONS)
def test_a_change_whose_process_died_after_the_commit_is_answered_and_not_repeated(
    path: str, http: httpx.Client, prepared: Prepared, database: Database
) -> None:
    creation = CREATIONS[path](prepared)
    before, changes = rows(database, creation.table), rows(database, tables.audit)
    key = {"Idempotency-Key": f"after-{path}"}
    with pytest.raises(httpx.TransportError):
        http.post(creation.path, headers={**key, "X-Request-Id": "killed-after-commit"}, **creation.arguments)
    assert rows(database, creation.table) == before + 1
    answers = [http.post(creation.path, headers=key, **creation.arguments) for _ in range(2)]
    assert (rows(database, creation.table), rows(database, tables.audit)) == (before + 1, changes + 1)
    for answer in answers:
        assert answer.is_success, answer.text
        assert answer.headers["idempotency-replayed"] == "true"
        assert answer.headers["content-type"] == "application/json"
    assert answers[0].content == answers[1].content
    if "location" in answers[0].headers:
        stored = http.get(answers[0].headers["location"]).json()
        assert {name: answers[0].json()[name] for name in stored} == stored
    other = http.post(creation.path, headers={**key, "Content-Type": "text/x-other"}, **creation.arguments)
    assert_problem(other, 409, "idempotency_key_reused")


@pytest.mark.parametrize("path", ["/corpora", "/jobs"])
def test_a_change_whose_process_died_before_the_commit_is_made_by_the_repeated_request(
    path: str, http: httpx.Client, prepared: Prepared, database: Database
) -> None:
    creation = CREATIONS[path](prepared)
    before = rows(database, creation.table)
    key = {"Idempotency-Key": f"before-{path}"}
    with pytest.raises(httpx.TransportError):
        http.post(
            creation.path, headers={**key, "X-Request-Id": "killed-before-commit"}, **creation.arguments
        )
    assert rows(database, creation.table) == before
    assert_problem(http.post(creation.path, headers=key, **creation.arguments), 409, "idempotency_key_in_use")
    let_holds_expire(database)
    answers = [http.post(creation.path, headers=key, **creation.arguments) for _ in range(2)]
    assert [answer.headers.get("idempotency-replayed") for answer in answers] == [None, "true"]
    assert answers[0].content == answers[1].content
    assert rows(database, creation.table) == before + 1


def let_holds_expire(database: Database) -> None:
    held = tables.kept_answer.c.status.is_(None)
    with database.write() as conn:
        past = clock.now(conn) - timedelta(seconds=1)
        conn.execute(tables.kept_answer.update().where(held).values(expires_at=past))
