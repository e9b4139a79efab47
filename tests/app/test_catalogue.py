"""What can be trained with, and the check of a job that is not posted."""

from pathlib import Path
from typing import get_args

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.features.presets import Preset
from tagsmith.core.jobs import leases
from tagsmith.core.learn.trainers.registry import SPECS
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem


@pytest.fixture(scope="module")
def corpus_id(server: ThreadServer) -> str:
    return str(httpx.post(f"{server.url}/corpora", content=samples.TEXT).json()["id"])


def test_every_trainer_is_described_with_the_defaults_of_its_fields(client: Client) -> None:
    found = {each.kind: each for each in client.trainers()}
    assert len(found) == len(SPECS)
    for spec in SPECS:
        info = found[spec.model_fields["kind"].default]
        assert info.summary.endswith("."), info
        assert "`" not in info.summary, info
        assert {field.name for field in info.fields} == set(spec.model_fields) - {"kind"}
    fields = {field.name: field for field in found["sgd-l1"].fields}
    assert fields["l1"].default == 0.5
    assert fields["l1"].bounds == {"minimum": 0, "maximum": 1e6}
    assert fields["penalty"].choices == ["cumulative", "clipping", "naive"]


def test_every_preset_is_described(client: Client) -> None:
    found = {each.name: each for each in client.presets()}
    assert list(found) == list(get_args(Preset))
    assert found["ner"].summary.startswith("Named entities")
    assert found["ner"].templates > 20
    assert [name for name, each in found.items() if each.trees] == ["parsing", "parsing-wide"]


def test_a_valid_job_is_returned_with_its_defaults_and_is_not_stored(client: Client, corpus_id: str) -> None:
    before = [job.id for job in client.jobs()]
    checked = client.validate({"kind": "train", "model": "m", "corpus": corpus_id, "trainer": {"kind": "pa"}})
    assert checked.spec["trainer"]["passes"] == 10
    assert checked.estimate.tokens == 50  # five tokens, ten passes
    assert checked.estimate.queue == "quick"
    assert [job.id for job in client.jobs()] == before


def test_an_invalid_job_is_refused_as_if_it_were_posted(http: httpx.Client, corpus_id: str) -> None:
    spec = samples.spec(corpus_id, trainer={"kind": "sgd-l1", "pases": 3})
    for path in ("/jobs/validate", "/jobs"):
        response = http.post(path, json=spec)
        assert_problem(
            response, 422, "invalid_spec", pointer="/trainer/pases", reason="did you mean `passes`?"
        )


def test_the_time_of_a_job_is_estimated_from_earlier_jobs_with_its_trainer(
    client: Client, corpus_id: str, database: Database
) -> None:
    spec = samples.spec(corpus_id, trainer={"kind": "cw", "passes": 4})
    assert client.validate(spec).estimate.seconds is None
    for speed in (5.0, 10.0, 1000.0):
        job_id = client.submit(spec).id
        with database.write() as conn:
            leases.claim(conn, job_id, "worker", 60)
            leases.succeed(conn, job_id, "worker", {}, {"tokens_per_second": speed})
    assert client.validate(spec).estimate.seconds == 2.0  # twenty tokens at the median speed
    assert client.validate(samples.spec(corpus_id, trainer={"kind": "arow"})).estimate.seconds is None


def test_a_job_that_starts_from_a_version_is_checked_without_a_write(
    client: Client, corpus_id: str, tmp_path: Path
) -> None:
    client.import_model("checked", samples.model_file("x", tmp_path / "model"))
    checked = client.validate(samples.spec(corpus_id, init="checked"))
    assert checked.spec["init"] == "checked:1"
