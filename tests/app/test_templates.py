"""The templates of versions over HTTP: what each has, which were dropped, and how they look."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from tagsmith.client import ApiError, Client
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.corpus.synthetic.generate import generate
from tagsmith.core.jobs import kinds
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.model import file
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import assert_problem
from tests.training import train

SVG = "{http://www.w3.org/2000/svg}"


L1 = {"kind": "sgd-l1", "l1": 2.0, "passes": 4}


def published(database: Database, name: str, folder: Path, features: Any, trainer: Any = L1) -> Any:
    """Train a model and publish it."""
    corpus = conll.read_conll(generate("references", 40, 3), max_line_bytes=1 << 16)
    job = kinds.parse_job(samples.spec("crp_x", model=name, features=features, trainer=trainer))
    assert isinstance(job, TrainSpec)
    result = finished(train(job, corpus, None))
    file.save(result.model, folder / name)
    new = NewVersion(
        objective=result.objective, active_features=result.active_features, train_seconds=0.1,
        metrics=result.metrics, trainer=trainer, spec=job.model_dump(mode="json"), corpus="crp_x",
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, name, new, [(folder / name).read_bytes()])
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def test_every_template_of_a_version_is_told_with_its_share(
    client: Client, http: httpx.Client, database: Database, folder: Path
) -> None:
    features = {"templates": [{"grams": 3, "window": 3}, "1", {"edge": True}]}
    result = published(database, "plain", folder, features)
    found = client.templates("plain", 1)
    assert len(found) == 7 + 6 + 5 + 1 + 1
    assert sum(each.active_features for each in found) == result.active_features
    kept = [each for each in found if each.kept]
    assert [each.name for each in kept] == [t.name for t in result.model.features.templates]
    assert all(each.norm > 0 and each.size_bytes > 0 for each in kept)
    # L1 leaves some templates without a single feature; they come last.
    dropped = [each for each in found if not each.kept]
    assert [each.name for each in dropped] == [each["name"] for each in result.metrics["dropped_templates"]]
    assert dropped == found[-len(dropped) :]
    assert {(each.norm, each.active_features, each.size_bytes) for each in dropped} == {(0.0, 0, 0)}
    assert http.get("/models/plain/versions/1/templates").json()["selection"] is None


def test_templates_chosen_by_information_gain_tell_their_gains(
    client: Client, database: Database, folder: Path
) -> None:
    select = {"kind": "information-gain", "templates": 5}
    published(database, "gains", folder, {"templates": [{"grams": 2, "window": 2}], "select": select})
    found = client.templates("gains", 1)
    gains = {each.name: each.gain for each in found}
    assert (len(gains), None in gains.values()) == (9, False)
    best = sorted(gains, key=lambda name: -(gains[name] or 0))[:5]
    assert {each.name for each in found if each.kept} <= set(best)
    assert not any(each.kept for each in found if each.name not in best)


def test_a_trainer_that_selects_tells_its_path(
    client: Client, http: httpx.Client, database: Database, folder: Path
) -> None:
    features = {"templates": [{"grams": 3, "columns": ["word", "1"], "window": 2}, {"edge": True}]}
    trainer = {
        "kind": "sparseptron",
        "budget": 4,
        "passes": 3,
        "every": 10,
        "refit": {"kind": "mira", "passes": 2},
    }
    told = published(database, "path", folder, features, trainer).metrics["selection"]
    response = http.get("/models/path/versions/1/templates")
    document = http.get("/openapi.json").json()
    answer = document["paths"]["/models/{name}/versions/{number}/templates"]["get"]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(response.json())
    selection = response.json()["selection"]
    assert selection == {key: told[key] for key in ("path", "peak_instantiated", "instantiated_by_pass")}
    assert len(selection["instantiated_by_pass"]) == 5
    found = client.templates("path", 1)
    assert len(found) == 2 * (5 + 4 + 3) + 1
    kept = {each.name for each in found if each.kept}
    assert kept == {each["name"] for each in told["templates"] if each["kept"]}
    assert kept == set(selection["path"][-1]["kept"])
    assert 1 <= len(kept) <= 4

    root = ET.fromstring(client.template_plot("path", 1))
    texts = [text.text for text in root.findall(f".//{SVG}text")]
    assert {"features instantiated", "kept at pass 1 to pass 3", *kept} <= set(texts)
    assert texts.count("dropped") == len(found) - len(kept)
    # A bar a template, the cells of its path, and the frame of the panel.
    assert len(root.findall(f".//{SVG}rect")) == len(found) * (1 + 3) + 1
    assert len(root.findall(f".//{SVG}polyline")) == 1


def test_what_is_not_there_is_a_problem(
    client: Client, http: httpx.Client, database: Database, folder: Path
) -> None:
    for path in ("templates", "templates.svg"):
        assert_problem(http.get(f"/models/nobody/versions/1/{path}"), 404, "model_not_found")
        assert_problem(http.get(f"/models/nobody/versions/0/{path}"), 422, "invalid_request")
    published(database, "once", folder, {"templates": ["word"]})
    with pytest.raises(ApiError) as raised:
        client.templates("once", 2)
    assert raised.value.code == "version_not_found"


@pytest.mark.parametrize(
    ("select", "pointer"),
    [
        ({"kind": "information-gain"}, "/features/select/templates"),
        ({"kind": "information-gain", "templates": 0}, "/features/select/templates"),
        ({"kind": "best", "templates": 3}, "/features/select/kind"),
        ("information-gain", "/features/select"),
    ],
)
def test_a_selection_that_cannot_be_read_is_pointed_at(http: httpx.Client, select: Any, pointer: str) -> None:
    body = samples.spec("crp_x", features={"templates": ["word"], "select": select})
    problem = assert_problem(http.post("/jobs", json=body), 422, "invalid_spec")
    assert problem["errors"][0]["pointer"] == pointer
