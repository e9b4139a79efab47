"""Previews of features: what a spec makes of a sentence and of a corpus, and every way to ask wrongly."""

from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from tagsmith.app.features import routes, service
from tagsmith.client import ApiError, Client
from tests import parsers
from tests.app import samples

pytestmark = pytest.mark.usefixtures("unchanged")

SENTENCE = [["Rockwell", "NNP"], ["said", "VBD"]]
TEMPLATES = [["word[-1]", "1[0]"], "ending", {"edge": True}]
DERIVED = {"ending": {"kind": "suffix", "n": 5}}


@pytest.fixture(scope="module")
def corpus_id(client: Client) -> str:
    return client.upload(samples.TEXT).id


@pytest.fixture(scope="module")
def trees_id(client: Client) -> str:
    options = {"columns": "form,upos", "label": "tree"}
    return client.upload(parsers.text(5), format="conllu", options=options).id


def test_every_feature_of_a_sentence_is_named(client: Client) -> None:
    made = client.preview({"templates": TEMPLATES, "derived": DERIVED}, SENTENCE)
    assert made.features == [
        ["word[-1]|1[0]=_B-1|NNP", "ending[0]=kwell"],
        ["word[-1]|1[0]=Rockwell|VBD"],  # "said" has no ending of five letters
    ]
    assert (made.columns, made.edges, made.counts) == (2, True, None)


def test_features_of_trees_are_those_of_every_arc(client: Client) -> None:
    templates = [["head.1", "modifier.1", "direction"], ["distance"]]
    made = client.preview({"templates": templates}, SENTENCE)
    assert made.arcs == [(0, 1), (2, 1), (0, 2), (1, 2)]
    assert made.features[1] == ["head.1|modifier.1|direction=VBD|NNP|right", "distance=1"]
    assert made.templates.short == templates
    assert client.preview({"templates": TEMPLATES, "derived": DERIVED}, SENTENCE).arcs == []


def test_features_of_trees_are_counted_with_the_names_of_the_columns(client: Client, trees_id: str) -> None:
    made = client.preview({"templates": [["head.upos", "modifier.upos"]]}, SENTENCE, trees_id)
    assert made.features[0] == ["head.upos|modifier.upos=_B-1|NNP"]
    assert made.counts is not None
    assert made.counts.tokens == len([line for line in parsers.text(5).splitlines() if line])
    with pytest.raises(ApiError) as refused:
        client.preview({"templates": TEMPLATES, "derived": DERIVED}, SENTENCE, trees_id)
    assert refused.value.status == 422


def test_features_of_label_pairs_stand_last_and_begin_at_the_second_token(client: Client) -> None:
    made = client.preview({"syntax": "wapiti", "templates": "*:%x[0,0]\nu1:%x[0,0]"}, ["a", "b"])
    assert made.features == [["*:a", "u1:a"], ["*:b", "u1:b", "*:b"]]


def test_templates_come_back_in_every_syntax_that_can_say_them(client: Client) -> None:
    made = client.preview({"syntax": "wapiti", "templates": "u:%x[0,0]\nu:%x[@1,0]\nb"}, ["a"])
    assert made.templates.model_dump(by_alias=True) == {
        "crf++": None,
        "wapiti": "u:%x[0,0]\nu:%x[@1,0]\nb",
        "short": [{"join": ["0[0]"], "name": "u"}, {"join": ["0[@1]"], "name": "u"}, {"edge": True}],
    }


def test_n_grams_of_a_window_come_back_template_by_template(client: Client) -> None:
    made = client.preview({"templates": [{"grams": [2, 2], "columns": ["1"], "window": [-1, 1]}]}, SENTENCE)
    assert made.features == [
        ["1[-1]|1[0]=_B-1|NNP", "1[0]|1[1]=NNP|VBD"],
        ["1[-1]|1[0]=NNP|VBD", "1[0]|1[1]=VBD|_B+1"],
    ]
    assert made.templates.short == [["1[-1]", "1[0]"], ["1[0]", "1[1]"]]


def test_a_corpus_is_counted_as_training_would(client: Client, corpus_id: str) -> None:
    made = client.preview({"templates": samples.TEMPLATES}, SENTENCE, corpus_id)
    assert made.counts is not None
    assert made.counts.model_dump() == {
        "tokens": 5,
        "labels": 3,
        "attributes": 14,
        "parameters": 14 * 3 + 9,
        "templates": [
            {"template": "U00", "attributes": 5, "occurrences": 5},
            {"template": "U01", "attributes": 4, "occurrences": 5},
            {"template": "U02", "attributes": 5, "occurrences": 5},
        ],
    }
    seen = client.preview({"templates": samples.TEMPLATES, "pairs": "seen"}, SENTENCE, corpus_id)
    assert seen.counts is not None
    # Every attribute has one label here; NP VP twice, VP O once.
    assert seen.counts.parameters == 14 + 2
    changed = {"pairs": "seen", "transitions": "all"}
    mixed = client.preview({"templates": samples.TEMPLATES, **changed}, SENTENCE, corpus_id)
    assert mixed.counts is not None
    assert mixed.counts.parameters == 14 + 9
    frequent = client.preview({"templates": samples.TEMPLATES, "min_frequency": 2}, SENTENCE, corpus_id)
    assert frequent.counts is not None
    # VBD with VP, and NP VP.
    assert frequent.counts.parameters == 1 + 1
    cut = client.preview({"templates": samples.TEMPLATES, "cutoff": 2}, SENTENCE, corpus_id)
    assert cut.counts is not None
    assert (cut.counts.attributes, cut.counts.templates[0].attributes) == (1, 0)


@pytest.mark.parametrize("name", sorted(routes.EXAMPLES))
def test_the_examples_of_the_document_are_answered_as_it_says(http: httpx.Client, name: str) -> None:
    document = http.get("/openapi.json").json()
    operation = document["paths"]["/features/preview"]["post"]
    body = operation["requestBody"]["content"]["application/json"]
    assert set(body["examples"]) == set(routes.EXAMPLES)
    example = routes.EXAMPLES[name]["value"]
    Draft202012Validator({**body["schema"], "components": document["components"]}).validate(example)
    response = http.post("/features/preview", json=example)
    assert response.status_code == 200
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator({**answer, "components": document["components"]}).validate(response.json())


@pytest.mark.parametrize(
    ("body", "code", "pointer", "reason"),
    [
        ({}, "invalid_spec", "/sentence", "Field required"),
        ({"sentence": "a b"}, "invalid_spec", "/sentence", "valid list"),
        ({"sentence": []}, "invalid_request", "/sentence", "1 to 500 tokens"),
        ({"sentence": ["a"] * 501}, "invalid_request", "/sentence", "1 to 500 tokens"),
        ({"sentence": ["a", 3]}, "invalid_request", "/sentence/1", "a string"),
        ({"sentence": ["a", "b" * 1001]}, "invalid_request", "/sentence/1", "at most 1000 characters"),
        ({"sentence": ["a", ["b"]]}, "invalid_request", "/sentence/1", "or all must be rows of columns"),
        (
            {"sentence": [["a", "b"], ["a"]]},
            "invalid_request",
            "/sentence/1",
            "1 columns, and the first one has 2",
        ),
        ({"sentence": [["a", "b"], ["a", None]]}, "invalid_request", "/sentence/1/1", "a string"),
        ({"sentence": [[]]}, "invalid_request", "/sentence/0", "1 to 256 columns"),
        (
            {"sentence": ["a"], "features": {"templates": "X"}},
            "invalid_template",
            "/features/templates",
            "starts with",
        ),
        (
            {"sentence": ["a"], "features": {"templates": [["word", "w["]]}},
            "invalid_template",
            "/features/templates/0/1",
            "A place is",
        ),
        (
            {"sentence": ["a"], "features": {"templates": ["word", {"grams": 2, "window": 70}]}},
            "invalid_template",
            "/features/templates/1/window",
            "farther than 64 tokens",
        ),
        (
            {"sentence": ["a"], "features": {"templates": [{"grams": 2, "columns": ["1"]}]}},
            "missing_column",
            "/features/templates",
            "no column 1",
        ),
        (
            {"sentence": ["a"], "features": {"templates": "U:%x[0,1]"}},
            "missing_column",
            "/features/templates",
            "no column 1",
        ),
        (
            {"sentence": ["a"], "features": {"derived": {"x": {"kind": "lower", "of": "x"}}}},
            "missing_column",
            "/features/derived/x/of",
            "derived from each other: x, x",
        ),
        (
            {"sentence": ["a"], "features": {"derived": {"x": {"kind": "regex", "pattern": "(a"}}}},
            "invalid_spec",
            "/features/derived/x",
            "A ( has no )",
        ),
        (
            {
                "sentence": ["a"],
                "features": {"derived": {"x": {"kind": "regex", "pattern": "((a{200}){200}){200}"}}},
            },
            "invalid_spec",
            "/features/derived/x",
            "more than 512 steps",
        ),
        (
            {"sentence": ["a"], "features": {"syntax": "wapiti", "templates": f'u:%t[0,0,"{"a" * 505}"]'}},
            "invalid_template",
            "/features/templates",
            "more than 500 characters",
        ),
        (
            {"sentence": ["a"], "features": {"preset": "nose"}},
            "invalid_spec",
            "/features/preset",
            "Known: chunking",
        ),
        ({"sentence": ["a"], "features": {"syntax": "wapiti"}}, "invalid_spec", "/features", "given as text"),
        (
            {"sentence": ["a"], "corpus": "crp_none"},
            "corpus_not_found",
            "/corpus",
            "There is no corpus crp_none.",
        ),
        ({"sentence": ["a"], "corpus": "no\tne"}, "invalid_spec", "/corpus", "pattern"),
        ({"sentence": ["a"], "extra": 1}, "invalid_spec", "/extra", "Unknown field"),
    ],
)
def test_what_is_wrong_is_pointed_at(
    http: httpx.Client, body: Any, code: str, pointer: str, reason: str
) -> None:
    response = http.post("/features/preview", json=body)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (422, code)
    assert problem["errors"][0]["pointer"] == pointer
    assert reason in problem["errors"][0]["detail"]


def test_rows_with_fewer_columns_than_the_features_of_the_corpus_need_are_refused(
    client: Client, corpus_id: str
) -> None:
    with pytest.raises(ApiError) as raised:
        client.preview({"templates": samples.TEMPLATES}, ["a"], corpus_id)
    assert (raised.value.code, raised.value.errors[0]["pointer"]) == ("missing_column", "/sentence")


def test_a_preview_that_nobody_could_read_is_refused(client: Client) -> None:
    templates = "\n".join(f"U{i}:" + "%x[0,0]" * 64 for i in range(400))
    with pytest.raises(ApiError) as raised:
        client.preview({"templates": templates}, ["a" * 1000] * 100)
    assert raised.value.code == "preview_too_large"


def test_a_corpus_too_large_to_count_in_a_request_is_refused(
    client: Client, corpus_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_CORPUS_TOKENS", 4)
    with pytest.raises(ApiError) as raised:
        client.preview({}, SENTENCE, corpus_id)
    assert (raised.value.code, raised.value.errors[0]["pointer"]) == ("corpus_too_large", "/corpus")
