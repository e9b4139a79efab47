"""The weights of versions over HTTP."""

from pathlib import Path

import httpx
import pytest

from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem

HERE = "/models/shown/versions/1"


@pytest.fixture(scope="module", autouse=True)
def shown(database: Database, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    new = NewVersion(
        objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    path = Path(tmp_path_factory.mktemp("models")) / "shown"
    with database.write() as conn:
        models.publish(conn, "shown", new, [samples.model_file("v1", path)])


def test_features_come_strongest_first_page_by_page(http: httpx.Client) -> None:
    first = http.get(f"{HERE}/features", params={"top": 3}).json()
    assert len(first["data"]) == 3
    assert first["next_cursor"] is not None
    rest = http.get(f"{HERE}/features", params={"top": 500, "cursor": first["next_cursor"]}).json()
    assert rest["next_cursor"] is None
    weights = [abs(each["weight"]) for each in first["data"] + rest["data"]]
    assert weights == sorted(weights, reverse=True)
    of_one = http.get(f"{HERE}/features", params={"label": "name-v1", "template": "U00"}).json()["data"]
    assert {(each["label"], each["template"], each["before"]) for each in of_one} == {
        ("name-v1", "U00", None)
    }
    assert {each["feature"] for each in of_one} <= {"U00:Rockwell", "U00:said", "U00:It", "U00:rose"}


def test_transitions_and_the_spread_of_weights_are_told(http: httpx.Client) -> None:
    pairs = http.get(f"{HERE}/transitions").json()["data"]
    assert {(each["before"], each["after"]) for each in pairs} <= {
        (a, b) for a in ("name-v1", "act-v1") for b in ("name-v1", "act-v1")
    }
    spread = http.get(f"{HERE}/weights", params={"bins": 4}).json()
    assert len(spread["bounds"]) == 5
    assert sum(spread["transitions"]) == len(pairs)
    assert sum(spread["features"]) == len(http.get(f"{HERE}/features", params={"top": 500}).json()["data"])


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("features?label=nobody", 422, "unknown_label"),
        ("features?template=nobody", 422, "unknown_template"),
        ("features?top=0", 422, "invalid_request"),
        ("features?cursor=nonsense", 422, "invalid_cursor"),
        ("features?cursor=99999999", 422, "invalid_cursor"),
        ("transitions?before=nobody", 422, "unknown_before"),
        ("transitions?label=nobody", 422, "unknown_label"),
        ("weights?bins=0", 422, "invalid_request"),
    ],
)
def test_what_a_version_has_not_is_refused(http: httpx.Client, path: str, status: int, code: str) -> None:
    assert_problem(http.get(f"{HERE}/{path}"), status, code)


def test_a_version_that_is_not_there_has_no_weights(http: httpx.Client) -> None:
    for part in ("features", "transitions", "weights"):
        assert_problem(http.get(f"/models/shown/versions/9/{part}"), 404, "version_not_found")
