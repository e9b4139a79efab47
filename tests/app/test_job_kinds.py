"""Comparing, tuning and evaluating over HTTP: what is accepted, what is refused, and the files of the results."""

import csv
import io
from typing import Any

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.store import blobs
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem
from tests.app.test_jobs import publish


@pytest.fixture(scope="module")
def corpus_id(server: ThreadServer) -> str:
    return str(httpx.post(f"{server.url}/corpora", content=samples.TEXT).json()["id"])


def compare_of(corpus_id: str, **changes: Any) -> dict[str, Any]:
    features = {"templates": samples.TEMPLATES}
    body = {"corpus": corpus_id, "dev": {"corpus": corpus_id}, "features": features}
    return {**body, "trainers": [{"kind": "pa"}, {"kind": "adf", "name": "ADF"}], **changes}


def tune_of(corpus_id: str, **changes: Any) -> dict[str, Any]:
    search = {"kind": "grid", "fields": {"trainer.l1": [0.1, 1.0]}}
    return {"corpus": corpus_id, "search": search, "folds": 2, **changes}


def succeed(database: Database, job_id: str, result: dict[str, Any]) -> None:
    with database.write() as conn:
        leases.claim(conn, job_id, "w", 30)
        leases.succeed(conn, job_id, "w", result)


def test_each_kind_is_stored_with_its_defaults(client: Client, corpus_id: str, database: Database) -> None:
    publish(database, "kinds")
    publish(database, "kinds")
    compared = client.compare(compare_of(corpus_id))
    assert (compared.kind, compared.state) == ("compare", "queued")
    assert [each["name"] for each in compared.spec["trainers"]] == [None, "ADF"]
    assert compared.spec["stop"] == {"kind": "patience", "patience": None, "max_seconds": None}
    tuned = client.tune(tune_of(corpus_id, train={"model": "kinds"}, stop={"kind": "flat"}))
    assert tuned.spec["stop"] == {"kind": "flat", "window": 5, "deviation": 0.01, "max_seconds": None}
    evaluated = client.evaluate(["kinds:1", "kinds"], corpus_id, resamples=500)
    assert (evaluated.spec["models"], evaluated.spec["resamples"]) == (["kinds:1", "kinds:2"], 500)
    assert [job.kind for job in client.jobs(model="kinds")] == ["evaluate", "tune"]
    for job in (compared, tuned, evaluated):
        client.cancel(job.id)


def test_versions_under_evaluation_cannot_be_deleted(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    publish(database, "held")
    job = client.evaluate(["held"], corpus_id)
    assert_problem(http.delete("/models/held/versions/1"), 409, "version_in_use")
    client.cancel(job.id)
    client.delete_version("held", 1)


@pytest.mark.usefixtures("unchanged")
class TestRefused:
    """Nothing is stored of a job that could not run."""

    @pytest.mark.parametrize(
        ("changes", "code", "pointer"),
        [
            ({"trainers": []}, "invalid_spec", "/trainers"),
            ({"trainers": [{"kind": "pa", "C": -1}]}, "invalid_spec", "/trainers/0/C"),
            ({"dev": None}, "invalid_spec", "/dev"),
            ({"dev": {"corpus": "crp_missing"}}, "corpus_not_found", "/dev/corpus"),
            ({"corpus": "crp_missing"}, "corpus_not_found", "/corpus"),
            ({"features": {"templates": "U:%x[0,7]"}}, "missing_column", "/features/templates"),
        ],
    )
    def test_comparisons(
        self, http: httpx.Client, corpus_id: str, changes: dict[str, Any], code: str, pointer: str
    ) -> None:
        response = http.post("/jobs", json={"kind": "compare", **compare_of(corpus_id), **changes})
        assert_problem(response, 422, code, pointer=pointer)

    @pytest.mark.parametrize(
        ("changes", "code", "pointer", "reason"),
        [
            ({"folds": 3}, "corpus_too_small", "/folds", "2 sentences"),
            (
                {"search": {"kind": "grid", "fields": {"trainer.l1": [-1]}}},
                "invalid_spec", "/search/fields/trainer.l1", "trainer.l1 = -1",
            ),
            (
                {"search": {"kind": "grid", "fields": {"features.templates": ["U:%x[0,0]", "U:%x[0,7]"]}}},
                "missing_column", "/search/fields/features.templates", "%x[0,7]",
            ),
            ({"train": {"model": "X Y"}}, "invalid_spec", "/train/model", "did you mean x-y?"),
            ({"search": {"kind": "grid"}}, "invalid_spec", "/search/fields", "required"),
        ],
    )  # fmt: skip
    def test_searches(
        self,
        http: httpx.Client,
        corpus_id: str,
        changes: dict[str, Any],
        code: str,
        pointer: str,
        reason: str,
    ) -> None:
        response = http.post("/jobs", json={"kind": "tune", **tune_of(corpus_id), **changes})
        assert_problem(response, 422, code, pointer=pointer, reason=reason)

    def test_evaluations_of_what_is_not_there(self, http: httpx.Client, corpus_id: str) -> None:
        body = {"kind": "evaluate", "models": ["nobody"], "corpus": corpus_id}
        assert_problem(http.post("/jobs", json=body), 422, "model_not_found", pointer="/models/0")
        body = {"kind": "evaluate", "models": ["a", "a"], "corpus": corpus_id}
        problem = assert_problem(http.post("/jobs", json=body), 422, "invalid_spec", pointer="/models")
        assert "evaluate" in problem["detail"]

    def test_files_of_jobs_that_are_not_there(self, http: httpx.Client) -> None:
        for name in ("table.csv", "plot.svg"):
            assert_problem(http.get(f"/jobs/job_missing/{name}"), 404, "job_not_found")


def test_two_names_of_one_version_are_refused(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    publish(database, "twice")
    client.promote("twice", 1)
    body = {"kind": "evaluate", "models": ["twice:1", "twice@champion"], "corpus": corpus_id}
    problem = assert_problem(http.post("/jobs", json=body), 422, "same_version", pointer="/models/1")
    assert "twice:1" in problem["errors"][0]["detail"]


def test_table_and_plot_of_a_comparison(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    job = client.compare(compare_of(corpus_id))
    for name in ("table.csv", "plot.svg"):
        problem = assert_problem(http.get(f"/jobs/{job.id}/{name}"), 409, "no_result")
        assert "queued" in problem["detail"]
    point = {"pass": 1, "seconds": 0.1, "objective": 2.0, "active_features": 3, "dev_score": 90.0}
    row = {
        "name": "ADF", "trainer": "adf", "passes": 1, "seconds": 0.1, "objective": 2.0, "active_features": 3,
        "score": 90.0, "f1": 90.0, "accuracy": 95.0, "passes_to_near": 1, "stop_reason": "passes",
    }  # fmt: skip
    result = {"score": "f1", "table": [row], "curves": [{"name": "ADF", "points": [point]}]}
    succeed(database, job.id, result)
    response = http.get(f"/jobs/{job.id}/table.csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert response.text == client.table(job.id)
    (read,) = csv.DictReader(io.StringIO(response.text))
    assert (read["name"], read["score"], read["passes_to_near"]) == ("ADF", "90.0", "1")
    picture = http.get(f"/jobs/{job.id}/plot.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.text == client.plot(job.id)
    assert ">ADF</text>" in picture.text
    assert "F1 on dev, %" in picture.text


def test_training_has_a_plot_and_no_table(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    job = client.train(samples.spec(corpus_id))
    assert_problem(http.get(f"/jobs/{job.id}/table.csv"), 409, "no_table")
    point = {"pass": 1, "seconds": 0.1, "objective": 2.0, "active_features": 3, "dev_score": None}
    succeed(database, job.id, {"model": "chunker", "version": 1, "curve": [point]})
    assert "chunker:1" in http.get(f"/jobs/{job.id}/plot.svg").text


def test_a_search_has_a_table_and_no_plot(
    http: httpx.Client, client: Client, corpus_id: str, database: Database
) -> None:
    job = client.tune(tune_of(corpus_id))
    assert_problem(http.get(f"/jobs/{job.id}/plot.svg"), 409, "no_plot")
    row = {
        "candidate": 1, "values": {"trainer.l1": 0.1}, "mean": 1.0, "deviation": 0.0, "scores": [1.0, 1.0],
        "passes": 1.0, "seconds": 0.1, "error": None,
    }  # fmt: skip
    succeed(database, job.id, {"score": "f1", "folds": 2, "table": [row]})
    assert client.table(job.id).splitlines()[1] == "1,0.1,1.0,0.0,1.0,1.0,1.0,0.1,"
    told = client.events(job.id)[-1].data["result"]
    assert told == {"score": "f1", "folds": 2}


def test_a_corpus_can_be_tagged_by_a_job(
    client: Client, http: httpx.Client, corpus_id: str, database: Database
) -> None:
    publish(database, "tags")
    made = client.tag_corpus("tags", corpus_id, format="conllu", options={"columns": "form,lemma"})
    job = http.get(f"/jobs/{made.id}").json()
    assert (job["spec"]["model"], job["model"]) == ("tags:1", "tags")
    assert_problem(http.get(f"/jobs/{job['id']}/output"), 409, "no_result")
    with database.write() as conn:
        blobs.write(conn, jobs.output_id(job["id"]), [b"1\tIt\n"])
    result = {"model": "tags", "version": 1, "format": "conllu", "media_type": "text/plain; charset=utf-8"}
    succeed(database, job["id"], {**result, "size_bytes": 5, "sha256": "abc"})
    response = http.get(f"/jobs/{job['id']}/output")
    assert response.content == client.output(job["id"]) == b"1\tIt\n"
    assert response.headers["model-version"] == "tags:1"
    assert response.headers["content-disposition"] == f'attachment; filename="{job["id"]}.conllu"'
    other = client.evaluate(["tags"], corpus_id)
    assert_problem(http.get(f"/jobs/{other.id}/output"), 409, "no_output")
    client.cancel(other.id)


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"format": "xml"}, "invalid_spec", "/format"),
        ({"options": {"colour": "red"}}, "invalid_options", "/options/colour"),
        ({"format": "conllu", "options": {"columns": 3}}, "invalid_options", "/options/columns"),
        ({"model": "nobody"}, "model_not_found", "/model"),
        ({"model": "tags:9"}, "version_not_found", "/model"),
        ({"corpus": "crp_nobody"}, "corpus_not_found", "/corpus"),
        ({"valid": "iob3"}, "invalid_spec", "/valid"),
        ({"decode": "best"}, "invalid_spec", "/decode"),
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_a_tag_job_that_cannot_be_done_is_refused(
    http: httpx.Client, corpus_id: str, changes: dict[str, Any], code: str, pointer: str
) -> None:
    body = {"kind": "tag", "model": "tags", "corpus": corpus_id, **changes}
    assert_problem(http.post("/jobs", json=body), 422, code, pointer=pointer)


def test_a_list_of_what_to_label_next_is_read_like_a_tagged_corpus(
    client: Client, http: httpx.Client, corpus_id: str, database: Database
) -> None:
    publish(database, "unsure")
    made = client.rank("unsure", corpus_id, by="margin", top=3)
    job = http.get(f"/jobs/{made.id}").json()
    assert (job["spec"]["model"], job["model"]) == ("unsure:1", "unsure")
    assert {name: job["spec"][name] for name in ("by", "per_token", "top", "diverse")} == {
        "by": "margin",
        "per_token": True,
        "top": 3,
        "diverse": False,
    }
    with database.write() as conn:
        blobs.write(conn, jobs.output_id(made.id), [b"{}\n"])
    result = {"model": "unsure", "version": 1, "format": "ndjson", "media_type": "application/x-ndjson"}
    succeed(database, made.id, {**result, "size_bytes": 3, "sha256": "abc"})
    response = http.get(f"/jobs/{made.id}/output")
    assert response.content == client.output(made.id) == b"{}\n"
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.headers["content-disposition"] == f'attachment; filename="{made.id}.ndjson"'
    assert_problem(http.get(f"/jobs/{made.id}/table.csv"), 409, "no_table")


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"by": "length"}, "invalid_spec", "/by"),
        ({"top": 0}, "invalid_spec", "/top"),
        ({"top": 100_001}, "invalid_spec", "/top"),
        ({"diverse": "very"}, "invalid_spec", "/diverse"),
        ({"format": "conll"}, "invalid_spec", "/format"),
        ({"model": "nobody"}, "model_not_found", "/model"),
        ({"model": "unsure:9"}, "version_not_found", "/model"),
        ({"corpus": "crp_nobody"}, "corpus_not_found", "/corpus"),
    ],
)
def test_a_rank_job_that_cannot_be_done_is_refused(
    http: httpx.Client, database: Database, corpus_id: str, changes: dict[str, Any], code: str, pointer: str
) -> None:
    publish(database, "unsure")
    body = {"kind": "rank", "model": "unsure", "corpus": corpus_id, **changes}
    assert_problem(http.post("/jobs", json=body), 422, code, pointer=pointer)
