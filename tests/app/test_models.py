"""Models, versions and aliases over HTTP."""

import hashlib
from collections.abc import Callable

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion, VersionRow
from tagsmith.core.store.engine import Database
from tests.app.servers import assert_problem

Publish = Callable[..., VersionRow]


@pytest.fixture(scope="module")
def publish(database: Database) -> Publish:
    def make(name: str, data: bytes = b"bytes of a model") -> VersionRow:
        new = NewVersion(
            objective=12.5, active_features=7, train_seconds=0.25, metrics={"f1": 93.5},
            trainer={"kind": "sgd-l1"}, spec={"model": name}, corpus="crp_x", seed=1,
            code_version="0.1.0", job_id="job_x",
        )  # fmt: skip
        with database.write() as conn:
            return models.publish(conn, name, new, [data])

    return make


def test_a_model_shows_its_versions_and_aliases(http: httpx.Client, client: Client, publish: Publish) -> None:
    publish("shown")
    publish("shown")
    client.promote("shown", 1)
    model = http.get("/models/shown").json()
    assert model.pop("created_at").endswith("Z")
    assert model == {"name": "shown", "latest": 2, "version_count": 2, "aliases": {"champion": 1}}
    assert http.get("/models").json()["data"][0]["name"] == "shown"
    assert [version.version for version in client.versions("shown")] == [2, 1]


def test_a_version_tells_all_that_is_known_of_it(http: httpx.Client, publish: Publish) -> None:
    publish("told", b"0123456789")
    version = http.get("/models/told/versions/1").json()
    assert version.pop("created_at").endswith("Z")
    assert version == {
        "model": "told",
        "version": 1,
        "objective": 12.5,
        "active_features": 7,
        "train_seconds": 0.25,
        "metrics": {"f1": 93.5},
        "trainer": {"kind": "sgd-l1"},
        "spec": {"model": "told"},
        "corpus": "crp_x",
        "corpus_name": None,
        "corpus_number": None,
        "evaluations": [],
        "size_bytes": 10,
        "sha256": hashlib.sha256(b"0123456789").hexdigest(),
        "seed": 1,
        "code_version": "0.1.0",
        "job_id": "job_x",
        "signature": None,  # the bytes are no model file
    }
    assert_problem(http.get("/models/told/versions/2"), 404, "version_not_found")


def test_versions_are_paged(http: httpx.Client, publish: Publish) -> None:
    for _ in range(3):
        publish("paged")
    first = http.get("/models/paged/versions", params={"limit": 2}).json()
    assert [version["version"] for version in first["data"]] == [3, 2]
    second = http.get("/models/paged/versions", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert ([version["version"] for version in second["data"]], second["next_cursor"]) == ([1], None)


def test_an_artifact_is_the_very_file_and_is_not_sent_twice(http: httpx.Client, publish: Publish) -> None:
    data = bytes(range(256)) * 10_000
    sha256 = publish("file", data).sha256
    response = http.get("/models/file/versions/1/artifact")
    assert response.content == data
    assert response.headers["etag"] == f'"{sha256}"'
    assert response.headers["content-length"] == str(len(data))
    assert response.headers["content-disposition"] == 'attachment; filename="file-1.model"'
    for known in (f'"{sha256}"', f'"other", W/"{sha256}"', "*"):
        again = http.get("/models/file/versions/1/artifact", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", f'"{sha256}"')


def test_a_version_is_deleted_unless_an_alias_stands_for_it(
    http: httpx.Client, client: Client, publish: Publish
) -> None:
    publish("doomed")
    publish("doomed")
    client.promote("doomed", 2)
    problem = assert_problem(http.delete("/models/doomed/versions/2"), 409, "version_in_use")
    assert "champion" in problem["detail"]
    client.delete_version("doomed", 1)
    assert_problem(http.get("/models/doomed/versions/1"), 404, "version_not_found")
    assert_problem(http.get("/models/doomed/versions/1/artifact"), 404, "version_not_found")
    assert publish("doomed").version == 3


def test_an_alias_is_moved_read_and_listed(http: httpx.Client, publish: Publish) -> None:
    publish("moved")
    publish("moved")
    response = http.put("/models/moved/aliases/champion", json={"version": 1, "reason": "first"})
    assert response.status_code == 200, response.text
    assert response.headers["etag"] == '"1"'
    alias = response.json()
    assert alias.pop("updated_at").endswith("Z")
    assert alias == {"model": "moved", "alias": "champion", "version": 1, "seq": 1, "rollback_to": None}
    assert http.put("/models/moved/aliases/champion", json={"version": 2}).headers["etag"] == '"2"'
    read = http.get("/models/moved/aliases/champion")
    assert (read.json()["version"], read.headers["etag"]) == (2, '"2"')
    assert http.get("/models/moved/aliases/champion", headers={"If-None-Match": '"2"'}).status_code == 304
    http.put("/models/moved/aliases/canary", json={"version": 1})
    listed = http.get("/models/moved/aliases").json()
    assert [(each["alias"], each["version"]) for each in listed["data"]] == [("canary", 1), ("champion", 2)]
    assert listed["next_cursor"] is None


@pytest.mark.parametrize(
    ("name", "tag"), [("one", '"1"'), ("any", "*"), ("list", '"9", "1"'), ("bare", "1"), ("none", None)]
)
def test_a_move_with_a_fresh_tag_is_made(
    http: httpx.Client, publish: Publish, name: str, tag: str | None
) -> None:
    publish(name)
    publish(name)
    http.put(f"/models/{name}/aliases/champion", json={"version": 1})
    headers = {"If-Match": tag} if tag else {}
    response = http.put(f"/models/{name}/aliases/champion", json={"version": 2}, headers=headers)
    assert (response.status_code, response.headers.get("etag")) == (200, '"2"')


def test_a_move_with_a_stale_tag_is_refused_and_not_recorded(
    http: httpx.Client, client: Client, publish: Publish
) -> None:
    publish("stale")
    publish("stale")
    client.promote("stale", 1)
    client.promote("stale", 2)
    for tag in ('"1"', '"3"', 'W/"2"', '"nonsense"', '"1", "7"', "", '"99999999999999999999"'):
        response = http.put("/models/stale/aliases/champion", json={"version": 1}, headers={"If-Match": tag})
        assert_problem(response, 412, "alias_moved")
        assert_problem(
            http.post("/models/stale/aliases/champion/rollback", headers={"If-Match": tag}),
            412,
            "alias_moved",
        )
    assert [move.to_version for move in client.history("stale")] == [2, 1]


def test_an_alias_can_be_made_only_if_there_is_none(http: httpx.Client, publish: Publish) -> None:
    publish("only")
    headers = {"If-None-Match": "*"}
    assert http.put("/models/only/aliases/champion", json={"version": 1}, headers=headers).status_code == 200
    response = http.put("/models/only/aliases/champion", json={"version": 1}, headers=headers)
    assert_problem(response, 412, "alias_moved")


def test_rollback_returns_to_what_was_before_and_history_tells_who_when_and_why(
    http: httpx.Client, client: Client, publish: Publish
) -> None:
    for _ in range(3):
        publish("back")
    for version in (1, 2, 3):
        client.promote("back", version, reason=f"try {version}")
    response = http.post(
        "/models/back/aliases/champion/rollback", json={"reason": "worse"}, headers={"X-Request-Id": "undo-1"}
    )
    assert (response.json()["version"], response.headers["etag"]) == (2, '"4"')
    assert (
        response.json()["rollback_to"] == http.get("/models/back/aliases/champion").json()["rollback_to"] == 1
    )
    assert http.post("/models/back/aliases/champion/rollback").json()["version"] == 1
    assert_problem(http.post("/models/back/aliases/champion/rollback"), 409, "nothing_to_roll_back")
    history = client.history("back")
    assert [(move.seq, move.action, move.from_version, move.to_version) for move in history] == [
        (5, "rollback", 2, 1),
        (4, "rollback", 3, 2),
        (3, "move", 2, 3),
        (2, "move", 1, 2),
        (1, "move", None, 1),
    ]
    assert (history[1].actor, history[1].reason, history[1].request_id) == ("127.0.0.1", "worse", "undo-1")
    assert [move.reason for move in history] == [None, "worse", "try 3", "try 2", "try 1"]
    page = http.get("/models/back/aliases/champion/history", params={"limit": 2}).json()
    assert [move["seq"] for move in page["data"]] == [5, 4]
    rest = {"limit": 500, "cursor": page["next_cursor"]}
    rest_page = http.get("/models/back/aliases/champion/history", params=rest).json()
    assert [move["seq"] for move in rest_page["data"]] == [3, 2, 1]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/version"),
        ({"version": 0}, "/version"),
        ({"version": -1}, "/version"),
        ({"version": "1"}, "/version"),
        ({"version": 1.5}, "/version"),
        ({"version": True}, "/version"),
        ({"version": 2**31}, "/version"),
        ({"version": 1, "reason": "x" * 1001}, "/reason"),
        ({"version": 1, "reason": 7}, "/reason"),
        ({"version": 1, "who": "me"}, "/who"),
        ([], ""),
    ],
)
def test_a_wrong_move_is_pointed_at(http: httpx.Client, body: object, pointer: str) -> None:
    response = http.put("/models/nobody/aliases/champion", json=body)
    assert_problem(response, 422, "invalid_request", pointer=pointer)


def test_nul_in_a_reason_is_refused_and_an_unknown_version_not_found(
    http: httpx.Client, publish: Publish
) -> None:
    publish("strict")
    response = http.put("/models/strict/aliases/champion", json={"version": 1, "reason": "a\0b"})
    assert_problem(response, 422, "nul_character", pointer="/reason")
    response = http.post("/models/strict/aliases/champion/rollback", json={"reason": "a\0b"})
    assert_problem(response, 422, "nul_character", pointer="/reason")
    response = http.put("/models/strict/aliases/champion", json={"version": 7})
    assert_problem(response, 404, "version_not_found")
    assert_problem(http.get("/models/strict/aliases/champion"), 404, "alias_not_found")
    assert_problem(http.get("/models/strict/aliases/champion/history"), 404, "alias_not_found")
    assert_problem(http.post("/models/strict/aliases/champion/rollback"), 404, "alias_not_found")


def test_an_alias_goes_back_by_steps_or_to_a_point_and_is_read_as_it_stood(
    http: httpx.Client, client: Client, publish: Publish
) -> None:
    for version in (1, 2, 3):
        publish("points")
        client.promote("points", version)
    path = "/models/points/aliases/champion"
    times = [move.at for move in client.history("points")][::-1]
    assert client.rollback("points", steps=2).version == 1
    assert client.rollback("points", to=3, reason="after all").version == 3
    assert client.rollback("points", to=times[1]).version == 2
    assert [move.to_seq for move in client.history("points")] == [2, 3, 1, None, None, None]
    for when, version, seq in ((times[0], 1, 1), (times[2], 3, 3)):
        read = http.get(path, params={"at": when.isoformat()})
        assert (read.json()["version"], read.json()["seq"], read.headers["etag"]) == (
            version,
            seq,
            f'"{seq}"',
        )
    assert client.alias("points", "champion", at=times[1]).version == 2
    before = http.get(path, params={"at": "2001-01-01T00:00:00Z"})
    assert_problem(before, 404, "alias_not_found")
    assert_problem(http.post(path + "/rollback", json={"to": 77}), 404, "move_not_found")
    assert_problem(http.post(path + "/rollback", json={"steps": 50}), 409, "nothing_to_roll_back")
    stale = http.post(path + "/rollback", json={"steps": 1}, headers={"If-Match": '"2"'})
    assert_problem(stale, 412, "alias_moved")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"steps": 0}, "/steps"),
        ({"steps": "2"}, "/steps"),
        ({"steps": True}, "/steps"),
        ({"to": 0}, "/to"),
        ({"to": 2**31}, "/to"),
        ({"to": True}, "/to"),
        ({"to": 1.5}, "/to"),
        ({"to": "yesterday"}, "/to"),
        ({"to": "2026-01-31T08:00:00"}, "/to"),
        ({"to": "0001-01-01T00:00:00+09:00"}, "/to"),
        ({"steps": 1, "to": 1}, ""),
    ],
)
def test_a_wrong_rollback_is_pointed_at(http: httpx.Client, body: object, pointer: str) -> None:
    response = http.post("/models/nobody/aliases/champion/rollback", json=body)
    assert_problem(response, 422, "invalid_request", pointer=pointer)


@pytest.mark.parametrize("when", ["", "now", "2026-01-31T08:00:00"])
def test_a_wrong_time_is_named(http: httpx.Client, when: str) -> None:
    response = http.get("/models/nobody/aliases/champion", params={"at": when})
    assert_problem(response, 422, "invalid_request", parameter="at")
