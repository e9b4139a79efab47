"""The audit: who changed what."""

import httpx

from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.keys import Callers, id_of
from tests.app.servers import ThreadServer, assert_problem
from tests.services import wait_until


def test_every_change_is_recorded_and_nothing_else(http: httpx.Client) -> None:
    made = http.post("/corpora", content=samples.TEXT, headers={"X-Request-Id": "upload-1"})
    corpus = made.headers["location"]
    http.post("/corpora", content=b"bad")
    http.get("/corpora")
    http.post("/tag", json={"model": "nobody", "sentences": []})
    assert http.delete(corpus, headers={"X-Request-Id": "delete-1"}).status_code == 204
    assert http.delete(corpus).status_code == 404
    deeds = http.get("/audit").json()["data"]
    assert [{key: deed[key] for key in deed if key not in ("id", "at")} for deed in deeds] == [
        {
            "actor": "127.0.0.1", "key_id": None, "method": "DELETE", "path": corpus, "location": None,
            "status": 204, "request_id": "delete-1", "note": None,
        },
        {
            "actor": "127.0.0.1", "key_id": None, "method": "POST", "path": "/corpora", "location": corpus,
            "status": 201, "request_id": "upload-1", "note": None,
        },
    ]  # fmt: skip
    assert deeds[0]["at"] > deeds[1]["at"]
    page = http.get("/audit", params={"limit": 1}).json()
    assert page["data"] == deeds[:1]
    assert http.get("/audit", params={"limit": 1, "cursor": page["next_cursor"]}).json()["data"] == deeds[1:]
    assert_problem(http.get("/audit", params={"cursor": "x"}), 422, "invalid_cursor", parameter="cursor")


def test_where_keys_are_in_force_it_names_the_key_and_is_for_admin(
    server: ThreadServer, database: Database
) -> None:
    callers = Callers(database, server.url)
    token = callers.token("train", name="nightly")
    admin, trainer = callers.client("admin"), callers.with_token(token)
    wait_until(lambda: httpx.get(f"{server.url}/audit").status_code == 401, "keys to be in force")
    assert trainer.post("/corpora", content=samples.TEXT).status_code == 201
    assert_problem(trainer.get("/audit"), 403, "scope_missing")
    found = admin.get("/audit", params={"key": id_of(token)}).json()["data"]
    assert [(deed["actor"], deed["key_id"]) for deed in found] == [
        (f"nightly ({id_of(token)})", id_of(token))
    ]
    twice = [
        admin.post("/keys", json={"name": "x", "scopes": ["tag"]}, headers={"Idempotency-Key": "k"}).json()
        for _ in range(2)
    ]
    assert twice[0].pop("token").startswith(twice[0]["id"])
    assert twice[1].pop("token") is None
    assert twice[0] == twice[1]
    other = callers.client("admin").post(
        "/keys", json={"name": "y", "scopes": ["tag"]}, headers={"Idempotency-Key": "k"}
    )
    assert other.status_code == 201  # one caller's key is nothing to another
    callers.close()
