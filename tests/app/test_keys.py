"""Keys over HTTP: who comes in, for what, until when."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
import sqlalchemy as sa

from tagsmith.app.keys import cache as key_cache
from tagsmith.app.keys.cache import KeyCache
from tagsmith.client import ApiError, Client
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store import keys, migrate, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tests.app import samples
from tests.app.keys import Callers, id_of
from tests.app.servers import ThreadServer, assert_problem
from tests.services import Databases, wait_until


@pytest.fixture(scope="module")
def callers(database: Database, server: ThreadServer) -> Iterator[Callers]:
    """After this, keys are in force: one was made."""
    made = Callers(database, server.url)
    made.token("admin")
    wait_until(lambda: httpx.get(f"{server.url}/corpora").status_code == 401, "keys to be in force")
    yield made
    made.close()


def test_without_a_key_ever_made_loopback_asks_for_none_and_http_makes_none(http: httpx.Client) -> None:
    assert http.get("/corpora").status_code == 200
    refused = http.post("/keys", json={"name": "first", "scopes": ["admin"]})
    assert_problem(refused, 409, "keys_not_in_force")
    assert http.get("/keys").json() == {"data": [], "next_cursor": None}


def test_a_request_without_a_key_or_with_a_wrong_one_is_told_how_to_come_in(
    callers: Callers, http: httpx.Client
) -> None:
    missing = http.get("/corpora")
    assert_problem(missing, 401, "key_missing")
    assert missing.headers["www-authenticate"] == 'Bearer realm="tagsmith"'
    good = callers.token("read")
    for wrong in (
        good[:-1] + ("a" if good[-1] != "a" else "b"),
        id_of(good),
        "x",
        "key_",
        "\x80",
        good + "x",
    ):
        answer = http.get("/corpora", headers={"Authorization": b"Bearer " + wrong.encode("latin-1")})
        assert_problem(answer, 401, "key_not_valid")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    for header in (b"Basic abc", b"Bearer", good.encode()):
        assert_problem(http.get("/corpora", headers={"Authorization": header}), 401, "key_missing")
    assert http.get("/corpora", headers={"Authorization": f"bearer {good}"}).status_code == 200


def test_probes_version_and_documentation_need_no_key(callers: Callers, http: httpx.Client) -> None:
    for path in ("/livez", "/version", "/docs", "/docs/assets/swagger-ui.css", "/openapi.json"):
        assert http.get(path).status_code == 200, path
    assert http.get("/readyz").status_code in (200, 503)


def test_each_scope_allows_its_own_and_admin_all(callers: Callers) -> None:
    tries = {
        Scope.READ: ("GET", "/jobs"),
        Scope.TAG: ("POST", "/tag"),
        Scope.TRAIN: ("POST", "/jobs"),
        Scope.PROMOTE: ("PUT", "/models/nobody/aliases/champion"),
        Scope.ADMIN: ("GET", "/keys"),
    }
    for held in Scope:
        client = callers.client(held)
        for needed, (method, path) in tries.items():
            answer = client.request(method, path, json={})
            if held in (needed, Scope.ADMIN):
                assert answer.status_code in (200, 404, 422), (held, needed, answer.text)
            else:
                problem = assert_problem(answer, 403, "scope_missing")
                assert f"`{needed}`" in problem["detail"]
                assert "insufficient_scope" in answer.headers["www-authenticate"]


def test_every_route_of_the_document_has_a_scope_or_is_said_to_need_none(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    open_routes = set()
    for path, item in document["paths"].items():
        for operation in item.values():
            if operation["security"]:
                assert operation["security"] == [{"key": [operation["x-scope"]]}]
                assert operation["x-scope"] in list(Scope)
            else:
                open_routes.add(path)
    assert open_routes == {"/livez", "/readyz", "/version"}


def test_no_route_of_the_document_answers_without_a_key(callers: Callers, http: httpx.Client) -> None:
    for path, item in http.get("/openapi.json").json()["paths"].items():
        for method, operation in item.items():
            if operation["security"]:
                answer = http.request(method.upper(), path.replace("{", "").replace("}", ""))
                assert_problem(answer, 401, "key_missing")
    assert_problem(http.get("/nowhere"), 401, "key_missing")


def test_a_key_is_made_shown_once_listed_and_revoked_within_two_seconds(
    callers: Callers, database: Database
) -> None:
    admin = callers.client("admin", name="boss")
    made = admin.post("/keys", json={"name": "shop", "scopes": ["tag", "read"], "expires_in_seconds": 3600})
    assert made.status_code == 201, made.text
    key = made.json()
    token = key.pop("token")
    assert token.startswith(key["id"] + "_")
    assert made.headers["location"] == f"/keys/{key['id']}"
    assert made.headers["cache-control"] == "no-store"
    assert (key["name"], key["scopes"]) == ("shop", ["read", "tag"])
    assert key["created_by"].startswith("boss (key_")
    assert admin.get(f"/keys/{key['id']}").json() == key
    assert key in admin.get("/keys").json()["data"]
    with database.read() as conn:
        stored = conn.execute(sa.select(tables.api_key).where(tables.api_key.c.id == key["id"])).one()
    assert token not in repr(stored)
    shop = callers.with_token(token)
    assert shop.get("/models").status_code == 200
    assert admin.delete(f"/keys/{key['id']}").status_code == 204
    wait_until(lambda: shop.get("/models").status_code == 401, "the revocation to be followed")
    assert admin.delete(f"/keys/{key['id']}").status_code == 204
    assert admin.get(f"/keys/{key['id']}").json()["revoked_at"] is not None
    assert_problem(admin.delete("/keys/key_none"), 404, "key_not_found")
    assert_problem(admin.get("/keys/key_none"), 404, "key_not_found")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "", "scopes": ["read"]}, "/name"),
        ({"name": "x\n", "scopes": ["read"]}, "/name"),
        ({"name": "x", "scopes": []}, "/scopes"),
        ({"name": "x", "scopes": ["root"]}, "/scopes/0"),
        ({"name": "x", "scopes": ["read"], "expires_in_seconds": 0}, "/expires_in_seconds"),
        ({"name": "x", "scopes": ["read"], "expires_in_seconds": 10**12}, "/expires_in_seconds"),
        ({"name": "x", "scopes": ["read"], "token": "mine"}, "/token"),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_with_its_place(
    callers: Callers, body: dict[str, object], pointer: str
) -> None:
    assert_problem(callers.client("admin").post("/keys", json=body), 422, "invalid_request", pointer=pointer)


def test_an_expired_key_is_not_valid(callers: Callers) -> None:
    short = callers.with_token(callers.token("read", expires_in=timedelta(seconds=0.7)))
    assert short.get("/jobs").status_code == 200
    wait_until(lambda: short.get("/jobs").status_code == 401, "the key to expire")


def test_last_use_is_noted_at_most_once_a_minute(callers: Callers, database: Database) -> None:
    token = callers.token("read")
    client = callers.with_token(token)

    def noted() -> object:
        with database.read() as conn:
            return keys.get(conn, id_of(token)).last_used_at

    assert noted() is None
    assert client.get("/jobs").status_code == 200
    wait_until(lambda: noted() is not None, "the use to be noted")
    first = noted()
    with database.write() as conn:
        keys.record_use(conn, id_of(token))
    assert noted() == first
    with database.write() as conn:
        long_ago = keys.get(conn, id_of(token)).created_at - timedelta(minutes=2)
        conn.execute(tables.api_key.update().values(last_used_at=long_ago))
        keys.record_use(conn, id_of(token))
    assert noted() != long_ago


def test_history_says_which_key_moved_an_alias_and_promoting_jobs_need_its_scope(
    callers: Callers, database: Database, server: ThreadServer
) -> None:
    new = NewVersion(
        objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, "kept", new, [b"never opened"])
    token = callers.token("read", "promote", name="releases")
    with Client(server.url, key=token) as client:
        client.promote("kept", 1)
        assert [move.actor for move in client.history("kept")] == [f"releases ({id_of(token)})"]
        with pytest.raises(ApiError) as caught:
            client.upload(samples.TEXT)
        assert caught.value.code == "scope_missing"
    trainer = callers.client("train")
    corpus_id = trainer.post("/corpora", content=samples.TEXT).json()["id"]
    assert trainer.post("/jobs", json=samples.spec(corpus_id)).status_code == 202
    refused = trainer.post("/jobs", json=samples.spec(corpus_id, promote="champion"))
    assert_problem(refused, 403, "scope_missing")
    tune = {
        **samples.spec(corpus_id),
        "kind": "tune",
        "search": {"kind": "grid", "fields": {"trainer.l1": [0.1, 1.0]}},
        "folds": 2,
    }
    del tune["model"]
    refused = trainer.post("/jobs", json={**tune, "train": {"model": "kept", "promote": "champion"}})
    assert_problem(refused, 403, "scope_missing")


def test_a_server_told_to_let_anyone_in_asks_for_no_key(callers: Callers, settings: Settings) -> None:
    with ThreadServer(settings.replace(access=ANYONE)) as running:
        assert httpx.get(f"{running.url}/corpora").status_code == 200
        refused = httpx.post(f"{running.url}/keys", json={"name": "x", "scopes": ["admin"]})
        assert_problem(refused, 409, "keys_not_in_force")


def test_a_server_elsewhere_asks_for_a_key_from_its_first_request(
    sqlite_url: str, settings: Settings
) -> None:
    with ThreadServer(settings.replace(host="0.0.0.0")) as running:
        assert httpx.get(f"{running.url}/corpora").status_code == 401


def test_a_key_that_was_valid_stays_so_for_a_while_when_the_database_is_lost(
    postgres_databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "FRESH_S", 0.0)
    url = postgres_databases.create(migrate.upgrade)
    database = Database(url)
    with database.write() as conn:
        key, token = keys.create(conn, "shop", [Scope.READ])

    async def play() -> None:
        cache = KeyCache(database, Settings(database_url=url))
        assert await cache.key_of(token) is not None
        postgres_databases.drop(url)
        known = await cache.key_of(token)
        assert known is not None
        assert known.id == key.id
        with pytest.raises(Unavailable):
            await cache.key_of("key_other_secret")
        monkeypatch.setattr(key_cache, "STALE_S", 0.0)
        with pytest.raises(Unavailable):
            await cache.key_of(token)

    asyncio.run(play())
    database.dispose()
