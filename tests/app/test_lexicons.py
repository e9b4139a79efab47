"""Lexicons over HTTP, and text cut into words."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats.segmented import read_segmented
from tagsmith.core.jobs import kinds
from tagsmith.core.jobs.kinds.train import TrainSpec
from tagsmith.core.model import file
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import assert_problem
from tests.training import train

TYPED = b"LOC\tNew York\nPER\tYork\n"


def upload(http: httpx.Client, content: bytes = TYPED, **params: str) -> httpx.Response:
    return http.post("/lexicons", params={"kind": "typed", **params}, content=content)


def test_an_upload_is_answered_with_what_was_counted_and_the_same_again_with_the_same(
    http: httpx.Client,
) -> None:
    response = upload(http, name="places")
    assert response.status_code == 201, response.text
    lexicon = response.json()
    assert response.headers["location"] == f"/lexicons/{lexicon['id']}"
    assert {key: lexicon[key] for key in lexicon if key not in ("id", "created_at")} == {
        "name": "places",
        "kind": "typed",
        "entries": 2,
        "classes": 2,
        "sha256": hashlib.sha256(TYPED).hexdigest(),
        "size_bytes": len(TYPED),
    }
    again = http.post(
        "/lexicons?kind=typed&name=other", content=gzip.compress(TYPED), headers={"Content-Encoding": "gzip"}
    )
    assert (again.status_code, again.json()) == (200, lexicon)
    assert http.get(f"/lexicons/{lexicon['id']}").json() == lexicon
    assert http.get(f"/lexicons/{lexicon['id']}/content").content == TYPED
    assert lexicon in http.get("/lexicons").json()["data"]


@pytest.mark.usefixtures("unchanged")
def test_what_cannot_be_read_is_refused_with_its_line_and_not_stored(http: httpx.Client) -> None:
    assert_problem(upload(http, b"LOC\tRome\nRome\n"), 422, "invalid_lexicon", line=2, reason="no tab")
    assert_problem(upload(http, b"\n"), 422, "empty_lexicon", line=1)
    assert_problem(upload(http, kind="brown"), 422, "unknown_kind")
    assert_problem(upload(http, b"x\ty\n" * 100_000), 413, "body_too_large")
    assert_problem(http.get("/lexicons/lex_none"), 404, "lexicon_not_found")
    assert_problem(http.delete("/lexicons/lex_none"), 404, "lexicon_not_found")


def with_lexicon(corpus_id: str, lexicon_id: str, **column: Any) -> dict[str, Any]:
    derived = {"gaz": {"kind": "lexicon", "lexicon": lexicon_id, **column}}
    return samples.spec(corpus_id, features={"templates": "U:%x[0,gaz]", "derived": derived})


def test_a_job_holds_the_lexicons_it_names(http: httpx.Client) -> None:
    corpus_id = http.post("/corpora", content=samples.TEXT).json()["id"]
    lexicon_id = upload(http, b"LOC\theld\n").json()["id"]
    job = http.post("/jobs", json=with_lexicon(corpus_id, lexicon_id))
    assert job.status_code == 202, job.text
    assert_problem(http.delete(f"/lexicons/{lexicon_id}"), 409, "lexicon_in_use")
    http.post(f"/jobs/{job.json()['id']}/cancel")
    assert http.delete(f"/lexicons/{lexicon_id}").status_code == 204
    place = "/features/derived/gaz/lexicon"
    gone = http.post("/jobs", json=with_lexicon(corpus_id, lexicon_id))
    assert_problem(gone, 422, "lexicon_not_found", pointer=place)
    other = upload(http, b"01\tword\n", kind="clusters").json()["id"]
    wrong = http.post("/jobs", json=with_lexicon(corpus_id, other))
    assert_problem(wrong, 422, "wrong_lexicon_kind", pointer=place)


def test_a_preview_shows_what_a_lexicon_finds(http: httpx.Client) -> None:
    lexicon_id = upload(http).json()["id"]
    derived = {"gaz": {"kind": "lexicon", "lexicon": lexicon_id, "fold_case": True}}
    body = {
        "features": {"templates": "U:%x[0,gaz]", "derived": derived},
        "sentence": ["in", "NEW", "York", "York"],
    }
    answer = http.post("/features/preview", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["features"] == [["U:O"], ["U:B-LOC"], ["U:I-LOC"], ["U:B-PER"]]
    body["features"]["derived"] = {"gaz": {"kind": "lexicon", "lexicon": "lex_" + "0" * 40}}  # type: ignore[index]
    place = "/features/derived/gaz/lexicon"
    assert_problem(http.post("/features/preview", json=body), 422, "lexicon_not_found", pointer=place)


@pytest.fixture(scope="module")
def segmenter(database: Database, tmp_path_factory: pytest.TempPathFactory) -> str:
    corpus = read_segmented(["我们 在 上海\n上海 很 大\n".encode() * 5], max_line_bytes=1000)
    features = {"templates": "U:%x[0,0]\nB"}
    spec = samples.spec("crp_x", features=features, trainer={"kind": "sgd-l1", "l1": 0.001, "passes": 10})
    job = kinds.parse_job(spec)
    assert isinstance(job, TrainSpec)
    path = Path(tmp_path_factory.mktemp("model")) / "model"
    file.save(finished(train(job, corpus, None)).model, path)
    new = NewVersion(
        objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, "segmenter", new, [path.read_bytes()])
    return "segmenter"


def tag(http: httpx.Client, **body: Any) -> httpx.Response:
    return http.post("/tag", json={"model": "segmenter", **body})


@pytest.mark.usefixtures("segmenter")
def test_text_is_answered_with_its_words_and_their_places(http: httpx.Client) -> None:
    answer = tag(http, text="上海很大").json()
    assert answer["words"] == [["上海", "很", "大"]]
    assert answer["offsets"] == [[[0, 2], [2, 3], [3, 4]]]
    assert answer["tags"] == [["B", "E", "S", "S"]]
    answer = tag(http, text=["我们在 上海\n上 海", ""]).json()
    assert answer["words"] == [["我们", "在", "上海", "上", "海"], []]
    assert answer["offsets"] == [[[0, 2], [2, 3], [4, 6], [7, 8], [9, 10]], []]
    assert answer["tags"] == [["B", "E", "S", "B", "E", "B", "E"], []]
    # Tokens are the characters that have tags. Format characters are blanks.
    answer = tag(http, text="上\u200b海 很", output="both").json()
    assert answer["tokens"] == [["上", "海", "很"]]
    assert len(answer["tags"][0]) == len(answer["tokens"][0])
    assert "tokens" not in tag(http, text="上海", output="spans").json()
    assert tag(http, text="上海", output="conll").json()["conll"] == "上\tB\n海\tE\n\n"


@pytest.mark.usefixtures("segmenter", "unchanged")
def test_text_in_the_wrong_place_is_refused(http: httpx.Client) -> None:
    assert_problem(tag(http), 422, "invalid_request", reason="sentences or a text")
    assert_problem(tag(http, text="上", sentences=[["上"]]), 422, "invalid_request")
    assert_problem(tag(http, text=[["上"]]), 422, "invalid_request")
    assert_problem(tag(http, text="上" * 5_001), 413, "too_many_tokens", pointer="/text")
    assert_problem(tag(http, text="\n" * 1_001), 413, "too_many_tokens", pointer="/text")


def test_a_model_of_several_columns_takes_no_text(
    http: httpx.Client, database: Database, tmp_path: Path
) -> None:
    new = NewVersion(
        objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, "names", new, [samples.model_file("v1", tmp_path / "model")])
    assert_problem(tag(http, model="names", text="上海"), 422, "text_not_supported", pointer="/text")
