"""Model files brought over HTTP: ours, and those of other programs."""

import gzip
from collections.abc import Callable
from pathlib import Path

import httpx
import pycrfsuite
import pytest

from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app.samples import model_file
from tests.app.servers import assert_problem
from tests.core.model.forging import put_together, taken_apart

Upload = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return model_file("one", tmp_path_factory.mktemp("artifact") / "model")


def test_a_model_goes_out_and_comes_back_byte_by_byte(
    http: httpx.Client, client: Client, artifact: bytes
) -> None:
    response = http.post("/models/brought/versions", content=artifact)
    assert response.status_code == 201, response.text
    assert response.headers["location"] == "/models/brought/versions/1"
    version = response.json()
    assert (version["version"], version["size_bytes"]) == (1, len(artifact))
    assert version["trainer"] == version["spec"] == {"kind": "import", "format": "tagsmith"}
    assert (version["job_id"], version["corpus"], version["objective"]) == (None, None, None)
    assert version["active_features"] > 0
    again = client.import_model("elsewhere", client.artifact("brought", 1), "tagsmith")
    assert (again.sha256, again.active_features) == (version["sha256"], version["active_features"])
    tags = client.tag("elsewhere:1", [[["Rockwell", "NNP"], ["said", "VBD"]]])
    assert tags.tags == [["name-one", "act-one"]]


def test_a_compressed_body_and_a_form_are_taken(http: httpx.Client, artifact: bytes) -> None:
    packed = http.post(
        "/models/packed/versions", content=gzip.compress(artifact), headers={"Content-Encoding": "gzip"}
    )
    form = http.post("/models/packed/versions", files={"file": ("packed.model", artifact)})
    assert [packed.status_code, form.status_code] == [201, 201]
    assert packed.json()["sha256"] == form.json()["sha256"]
    assert form.json()["version"] == 2


def test_a_crfsuite_model_is_brought_and_tags_by_its_attributes(client: Client, tmp_path: Path) -> None:
    trainer = pycrfsuite.Trainer(verbose=False)
    sentence = [{"word": "Rockwell", "capital": True}, {"word": "said"}]
    trainer.append(sentence, ["B-NP", "B-VP"])
    trainer.train(str(tmp_path / "model"))
    made = client.import_model("crfsuite", (tmp_path / "model").read_bytes())
    assert made.trainer == {"kind": "import", "format": "crfsuite"}
    assert client.tag("crfsuite", [sentence]).tags == [["B-NP", "B-VP"]]


def test_files_that_are_not_sound_store_nothing(http: httpx.Client, artifact: bytes, unchanged: None) -> None:
    header, payload = taken_apart(artifact)
    payload[header["arrays"]["table.rows"]["at"] :][:1] = b""
    wild = dict(header, labels=[*header["labels"], header["labels"][0]])
    bodies = {
        "damaged": artifact[:-1] + b"\xff",
        "cut short": artifact[: len(artifact) // 2],
        "contradicting itself": put_together(wild, bytes(payload)),
        "of another kind": b"PK\x03\x04",
        "a broken crfsuite model": b"lCRF" + bytes(60),
    }
    for body in bodies.values():
        assert_problem(http.post("/models/refused/versions", content=body), 422, "corrupt_model")
    assert_problem(http.post("/models/refused/versions"), 422, "empty_body")
    assert_problem(http.get("/models/refused"), 404, "model_not_found")


def test_what_the_request_says_wrongly_is_refused(
    http: httpx.Client, artifact: bytes, unchanged: None
) -> None:
    path = "/models/refused/versions"
    response = http.post(path, content=artifact, params={"format": "pickle"})
    assert_problem(response, 422, "unknown_format", parameter="format")
    assert_problem(http.post(path, content=artifact, params={"format": "crfsuite"}), 422, "corrupt_model")
    assert_problem(
        http.post(path, content=artifact, headers={"Content-Encoding": "br"}), 415, "unsupported_encoding"
    )
    assert_problem(http.post("/models/Not A Name/versions", content=artifact), 422, "invalid_request")


def test_a_body_beyond_the_limits_is_refused(http: httpx.Client, unchanged: None) -> None:
    response = http.post("/models/large/versions", content=bytes(200_001))
    assert_problem(response, 413, "body_too_large")
    bomb = gzip.compress(bytes(1_000_001))
    response = http.post("/models/large/versions", content=bomb, headers={"Content-Encoding": "gzip"})
    assert_problem(response, 413, "corpus_too_large")


def test_versions_are_compared_by_their_weights_metrics_and_specs(
    http: httpx.Client, client: Client, artifact: bytes, tmp_path: Path
) -> None:
    client.import_model("compared", artifact)
    client.import_model("compared", model_file("two", tmp_path / "model"))
    found = client.compare_versions("compared", 1, 2, top=3)
    assert (found.model, found.base, found.head) == ("compared", 1, 2)
    assert (found.metrics, found.spec) == ([], [])
    assert sorted(found.labels_added) == ["act-two", "name-two"]
    assert sorted(found.labels_removed) == ["act-one", "name-one"]
    weights = found.weights
    assert weights.added == weights.head > 0
    assert weights.removed == weights.base > 0
    assert len(weights.top) == 3
    same = client.compare_versions("compared", 1, 1)
    assert same.weights.unchanged == same.weights.base
    path = "/models/compared/compare"
    assert_problem(http.get(path, params={"base": 1, "head": 9}), 404, "version_not_found")
    assert_problem(http.get(path, params={"base": 1}), 422, "invalid_request", parameter="head")
    assert_problem(http.get("/models/nobody/compare?base=1&head=2"), 404, "model_not_found")


def test_metrics_and_specs_are_compared_place_by_place(
    client: Client, artifact: bytes, database: Database
) -> None:
    for f1, trainer in ((90.0, {"kind": "sgd", "l2": 1.0}), (91.5, {"kind": "sgd", "passes": 3})):
        metrics = {"dev": {"f1": f1, "by_pass": [1, 2]}, "best": True}
        new = NewVersion(None, 7, 0.5, metrics, trainer, {"trainer": trainer}, None, 1, "0.1.0", None)
        with database.write() as conn:
            models.publish(conn, "measured", new, [artifact])
    found = client.compare_versions("measured", 1, 2)
    assert [change.model_dump() for change in found.metrics] == [
        {"name": "dev.f1", "base": 90.0, "head": 91.5, "change": 1.5}
    ]
    assert [change.model_dump() for change in found.spec] == [
        {"pointer": "/trainer/l2", "base": 1.0, "head": None},
        {"pointer": "/trainer/passes", "base": None, "head": 3},
    ]
