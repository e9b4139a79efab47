"""A change and its entry in the audit are one: neither is stored without the other."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.store import tables
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem
from tests.services import wait_until

Change = Callable[[], httpx.Response]
#: What is posted and changes nothing.
CHANGELESS = {("post", path) for path in ("/tag", "/features/preview", "/corpora/inspect", "/jobs/validate")}


@pytest.fixture(scope="module")
def admin(server: ThreadServer, database: Database) -> Iterator[httpx.Client]:
    callers = Callers(database, server.url)
    made = callers.client("admin")
    wait_until(lambda: httpx.get(f"{server.url}/keys").status_code == 401, "keys to be in force")
    yield made
    callers.close()


@pytest.fixture(scope="module")
def changes(admin: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Change]:
    """A request to each route that changes something, with all in place that it needs."""

    def made(path: str, content: bytes) -> str:
        response = admin.post(path, content=content)
        assert response.status_code == 201, response.text
        return response.headers["location"]

    def job(*wishes: str) -> str:
        location = admin.post("/jobs", json=samples.spec(used)).headers["location"]
        for wish in wishes:
            assert admin.post(f"{location}/{wish}").status_code == 202
        return str(location)

    used = made("/corpora", samples.TEXT).removeprefix("/corpora/")
    corpus, lexicon = made("/corpora", samples.TEXT), made("/lexicons", b"Rockwell\n")
    model = samples.model_file("x", Path(tmp_path_factory.mktemp("model")) / "model")
    for _ in range(3):
        made("/models/m/versions", model)
    champion = "/models/m/aliases/champion"
    for version in (1, 2):
        assert admin.put(champion, json={"version": version}).status_code == 200
    policy = {"retention": {"keep_last": 5}}
    assert admin.put("/models/m/policy", json=policy).status_code == 200
    key = admin.post("/keys", json={"name": "k", "scopes": ["tag"]}).headers["location"]
    made("/models/unused/versions", model)
    queued, paused, cancelled, other, ended = job(), job("pause"), job("cancel"), job(), job("cancel")
    return {
        "post /corpora": lambda: admin.post("/corpora", content=samples.TEXT),
        "delete /corpora/{corpus_id}": lambda: admin.delete(corpus),
        "post /lexicons": lambda: admin.post("/lexicons", content=b"Boeing\n"),
        "delete /lexicons/{lexicon_id}": lambda: admin.delete(lexicon),
        "post /jobs": lambda: admin.post("/jobs", json=samples.spec(used)),
        "delete /jobs/{job_id}": lambda: admin.delete(ended),
        "post /jobs/{job_id}/cancel": lambda: admin.post(f"{queued}/cancel"),
        "post /jobs/{job_id}/pause": lambda: admin.post(f"{other}/pause"),
        "post /jobs/{job_id}/resume": lambda: admin.post(f"{paused}/resume"),
        "post /jobs/{job_id}/retry": lambda: admin.post(f"{cancelled}/retry"),
        "post /models/{name}/versions": lambda: admin.post("/models/m/versions", content=model),
        "delete /models/{name}": lambda: admin.delete("/models/unused"),
        "delete /models/{name}/versions/{number}": lambda: admin.delete("/models/m/versions/3"),
        "put /models/{name}/aliases/{alias}": lambda: admin.put(f"{champion}-2", json={"version": 1}),
        "post /models/{name}/aliases/{alias}/rollback": lambda: admin.post(f"{champion}/rollback"),
        "put /models/{name}/policy": lambda: admin.put("/models/m/policy", json=policy),
        "delete /models/{name}/policy": lambda: admin.delete("/models/m/policy"),
        "post /keys": lambda: admin.post("/keys", json={"name": "l", "scopes": ["tag"]}),
        "delete /keys/{key_id}": lambda: admin.delete(key),
    }


def everything(database: Database) -> dict[str, list[str]]:
    """All rows of all tables, but for when keys were last used."""
    with database.read() as conn:
        return {
            table.name: sorted(
                str(row)
                for row in conn.execute(sa.select(*(each for each in table.c if each.name != "last_used_at")))
            )
            for table in tables.metadata.sorted_tables
        }


def test_every_route_that_changes_something_is_gone_through(
    admin: httpx.Client, changes: Mapping[str, Change]
) -> None:
    document = admin.get("/openapi.json").json()["paths"]
    routes = {(method, path) for path, item in document.items() for method in item if method != "get"}
    assert set(changes) == {" ".join(route) for route in routes - CHANGELESS}


def test_what_cannot_be_recorded_is_not_done(
    changes: Mapping[str, Change], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("the audit is away")

    monkeypatch.setattr("tagsmith.core.store.audit.record", away)
    before = everything(database)
    for name, change in changes.items():
        assert_problem(change(), 503, "unavailable")
        assert everything(database) == before, name


def test_what_is_done_is_recorded_once_in_its_transaction(
    admin: httpx.Client, changes: Mapping[str, Change], caplog: pytest.LogCaptureFixture
) -> None:
    for name, change in changes.items():
        before = admin.get("/audit").json()["data"][0]["id"]
        response = change()
        assert response.is_success, (name, response.text)
        deed, previous = admin.get("/audit", params={"limit": 2}).json()["data"]
        assert previous["id"] == before, name
        assert (deed["method"].lower(), deed["path"]) == (name.split()[0], response.request.url.path)
        assert (deed["status"], deed["location"], deed["request_id"]) == (
            response.status_code,
            response.headers.get("location"),
            response.headers["x-request-id"],
        )
    assert not [record for record in caplog.records if "apart from its transaction" in record.message]
    again = admin.post("/lexicons", content=b"Boeing\n")
    assert again.status_code == admin.get("/audit").json()["data"][0]["status"] == 200


def test_what_a_service_forgets_is_recorded_late(
    admin: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagsmith.app.deps.Caller.record", lambda *_, **__: None)
    location = admin.post("/corpora", content=samples.TEXT).headers["location"]
    assert admin.delete(location).status_code == 204
    deleted, uploaded = admin.get("/audit", params={"limit": 2}).json()["data"]
    assert (deleted["method"], deleted["path"], deleted["status"]) == ("DELETE", location, 204)
    assert (uploaded["path"], uploaded["location"], uploaded["status"]) == ("/corpora", location, 201)
