"""Tagging tokens that are objects of named attributes, over HTTP."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tagsmith.core.corpus.formats.ndjson import read_ndjson
from tagsmith.core.features.spec import FeatureSpec
from tagsmith.core.learn.problem.problem import compile_corpus
from tagsmith.core.learn.weights.scoring import Weights
from tagsmith.core.model.file import save
from tagsmith.core.pipeline.build import build_model
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app.servers import ThreadServer, assert_problem

CORPUS = b'{"tokens": [{"word": "Rockwell", "size": 2}, {"word": "said"}], "labels": ["B-NAME", "O"]}'


@pytest.fixture(scope="module", autouse=True)
def objects(database: Database, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A model in which `size` speaks for a name and `word:said` against it, by so much a unit."""
    compiled = compile_corpus(FeatureSpec().resolve(0), read_ndjson([CORPUS], max_line_bytes=1000))
    problem = compiled.problem
    values = np.zeros(problem.rows * problem.width, np.float32)
    (bag,) = compiled.bags
    for name, label, weight in (("size", 0, 1.0), ("word:said", 1, 1.5)):
        row = int(bag.attributes[bag.vocabulary.id_of(name)])
        values[row * problem.width + label] = weight
    path: Path = tmp_path_factory.mktemp("models") / "objects"
    save(build_model(compiled, Weights(problem, values)), path)
    new = NewVersion(
        objective=None, active_features=2, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, "objects", new, [path.read_bytes()])


def post(http: httpx.Client, sentences: Any, **more: Any) -> httpx.Response:
    return http.post("/tag", json={"model": "objects", "sentences": sentences, **more})


def test_values_decide_how_much_an_attribute_counts(http: httpx.Client) -> None:
    sentences = [
        [{"size": 1, "word": "said"}, {"size": 2.0, "word": "said"}],
        [{"size": -1}, {"word": "said"}],
    ]
    assert post(http, sentences).json()["tags"] == [["O", "B-NAME"], ["O", "O"]]
    spans = post(http, sentences, output="spans").json()["spans"]
    assert spans == [[{"type": "NAME", "start": 1, "stop": 2}], []]


@pytest.mark.parametrize(
    ("sentences", "code", "pointer"),
    [
        ([[{"size": 1}, {"size": 1e13}]], "invalid_attribute", "/sentences/0/1/size"),
        ([[{"size": None}]], "invalid_attribute", "/sentences/0/0/size"),
        ([[{"size": {"of": [1]}}]], "invalid_attribute", "/sentences/0/0/size/of/0"),
        ([[{"size": 1}], [{"size": 1}, "word"]], "invalid_request", "/sentences/1/1"),
        ([["word"]], "invalid_attribute", "/sentences/0/0"),
        ([[{"size": 10**400}]], "invalid_attribute", "/sentences/0/0/size"),
    ],
)
def test_a_wrong_attribute_is_refused_with_its_place(
    http: httpx.Client, sentences: Any, code: str, pointer: str
) -> None:
    assert_problem(post(http, sentences), 422, code, pointer=pointer)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_finite_number_is_refused(http: httpx.Client, number: str) -> None:
    body = f'{{"model": "objects", "sentences": [[{{"size": {number}}}]]}}'
    response = http.post("/tag", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422)


def test_a_name_given_twice_is_refused(http: httpx.Client) -> None:
    body = '{"model": "objects", "sentences": [[{"size": 1, "size": 2}]]}'
    response = http.post("/tag", content=body, headers={"Content-Type": "application/json"})
    assert_problem(
        response, 422, "invalid_request", reason="the name 'size' occurs twice", pointer="/sentences"
    )


def test_column_text_cannot_hold_objects(http: httpx.Client) -> None:
    assert_problem(post(http, [[{"size": 1}]], output="conll"), 422, "unwritable_token")


def test_a_corpus_of_objects_is_uploaded_and_written_back(http: httpx.Client) -> None:
    made = http.post("/corpora?format=ndjson", content=CORPUS)
    assert made.status_code == 201, made.text
    assert made.json()["columns"] == []
    text = http.get(f"/corpora/{made.json()['id']}/content?format=crfsuite").text
    assert text == "B-NAME\tword\\:Rockwell\tsize:2.0\nO\tword\\:said\n\n"
    assert_problem(http.get(f"/corpora/{made.json()['id']}/content?format=conll"), 422, "unwritable_value")
