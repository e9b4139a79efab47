"""Corpora of dependency trees over HTTP: upload, report, sentences, export, and what is refused."""

import re
from pathlib import Path
from typing import Any

import httpx

from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import assert_problem

TEXT = (
    b"# weight = 2.0\n"
    b"1\tRockwell\tRockwell\tPROPN\t_\t_\t2\tnsubj\t_\t_\n"
    b"2\tsaid\tsay\tVERB\t_\t_\t0\troot\t_\t_\n"
    b"3\t.\t.\tPUNCT\t_\t_\t0\troot\t_\t_\n\n"
    b"1\tIt\tit\tPRON\t_\t_\t3\tobj\t_\t_\n"
    b"2\trose\trise\tVERB\t_\t_\t0\troot\t_\t_\n"
    b"3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)
TREE = {"columns": "form,upos", "label": "tree"}


def upload(http: httpx.Client, content: bytes = TEXT, **params: str) -> dict[str, Any]:
    response = http.post("/corpora", params=params or {"name": "trees", **TREE}, content=content)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


def test_an_upload_says_that_it_has_trees(http: httpx.Client) -> None:
    corpus = upload(http)
    assert (corpus["format"], corpus["labels"], corpus["trees"]) == ("conllu", [], True)
    assert http.get(f"/corpora/{corpus['id']}").json() == corpus
    listed = http.get("/corpora", params={"name": "trees"}).json()["data"]
    assert listed[0]["trees"]
    assert not upload(http, samples.TEXT, name="labels")["trees"]


def test_the_report_has_the_counts_of_trees(http: httpx.Client) -> None:
    report = http.get(f"/corpora/{upload(http)['id']}/report").json()
    assert report["trees"] == {
        "relation_counts": {"nsubj": 1, "root": 3, "obj": 1, "punct": 1},
        "arc_lengths": {"1": 2, "2": 1},
        "nonprojective_sentences": 1,
        "several_roots_sentences": 1,
    }
    assert (report["label_counts"], report["sentences"]) == ({}, 2)
    plain = upload(http, samples.TEXT, name="labels")
    assert http.get(f"/corpora/{plain['id']}/report").json()["trees"] is None


def test_sentences_have_heads_and_relations_and_are_found_by_relation(http: httpx.Client) -> None:
    path = f"/corpora/{upload(http)['id']}/sentences"
    first, second = http.get(path).json()["data"]
    assert (first["heads"], first["relations"]) == ([2, 0, 0], ["nsubj", "root", "root"])
    assert (first["labels"], first["spans"], first["columns"][0]) == ([], [], ["Rockwell", "PROPN"])
    assert http.get(path, params={"label": "punct"}).json()["data"] == [second]
    # A part of a relation is no type, as that of a label is.
    renamed = upload(http, TEXT.replace(b"obj", b"x-obj"), name="renamed", **TREE)
    path = f"/corpora/{renamed['id']}/sentences"
    assert len(http.get(path, params={"label": "x-obj"}).json()["data"]) == 1
    assert http.get(path, params={"label": "obj"}).json()["data"] == []


def test_sentences_that_occur_again_with_other_trees_are_warned_of(http: httpx.Client) -> None:
    again = TEXT + TEXT.replace(b"obj", b"nsubj")
    found = http.post("/corpora/inspect", params=TREE, content=again).json()
    assert found["warnings"] == ["1 of 4 sentences occur again with other trees."]


def test_an_inspection_shows_trees_and_does_not_miss_labels(http: httpx.Client) -> None:
    found = http.post("/corpora/inspect", params=TREE, content=TEXT).json()
    assert found["warnings"] == []
    assert found["report"]["trees"]["several_roots_sentences"] == 1
    assert found["sample"][1]["heads"] == [3, 0, 2]


def test_the_content_keeps_trees_and_weights(http: httpx.Client) -> None:
    path = f"/corpora/{upload(http)['id']}/content"
    assert http.get(path).content == TEXT
    again = http.get(path, params={"format": "conllu"})
    assert again.status_code == 200, again.text
    assert again.content == re.sub(rb"(?m)^(\d\t\S+\t)\S+", rb"\1_", TEXT)
    other = http.get(path, params={"format": "conllx", "columns": "form,cpostag"}).content
    assert other.startswith(b"1\tRockwell\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n")
    assert_problem(http.get(path, params={"format": "conll"}), 422, "unwritable_value", reason="no heads")


def test_faulty_trees_are_refused_with_their_lines(http: httpx.Client) -> None:
    wrong = TEXT.replace(b"\t3\tobj", b"\t1\tobj").replace(b"\t2\tnsubj", b"\t9\tnsubj")
    response = http.post("/corpora", params=TREE, content=wrong)
    assert_problem(response, 422, "invalid_corpus")
    assert [(each["line"], each["detail"]) for each in response.json()["errors"]] == [
        (2, "the head is 9, but the sentence has 3 words"),
        (6, "word 1 is its own head"),
    ]
    assert_problem(
        http.post("/corpora", params={**TREE, "columns": "form,head"}, content=TEXT), 422, "invalid_options"
    )


def test_features_of_labels_are_refused_for_trees(http: httpx.Client) -> None:
    body = {**samples.spec(""), "corpus": upload(http)["id"]}
    assert_problem(http.post("/jobs", json=body), 422, "invalid_spec", pointer="/features/templates")


def test_a_dev_set_has_trees_if_and_only_if_the_training_corpus_has(http: httpx.Client) -> None:
    plain = upload(http, samples.TEXT, name="labels")
    body = samples.spec(plain["id"], dev={"corpus": upload(http)["id"]})
    assert_problem(
        http.post("/jobs", json=body), 422, "corpora_differ", pointer="/dev/corpus", reason="has trees"
    )


def test_a_tagger_replaces_trees_by_its_labels(
    http: httpx.Client, client: Client, database: Database, tmp_path: Path
) -> None:
    with database.write() as conn:
        models.publish(conn, "over-trees", samples.NEW, [samples.model_file("v1", tmp_path / "m")])
    corpus = upload(http)["id"]
    found = client.content(corpus, "conll", model="over-trees").decode()
    path = f"/corpora/{corpus}/content"
    assert found.startswith("Rockwell PROPN name-v1\n")
    query = {"format": "conllu", "model": "over-trees"}
    assert_problem(http.get(path, params=query), 422, "invalid_options", parameter="label")
    tagged = http.get(path, params={**query, "label": "misc"}).content
    assert tagged.startswith(b"# weight = 2.0\n1\tRockwell\t_\tPROPN\t_\t_\t_\t_\t_\tname-v1\n")
