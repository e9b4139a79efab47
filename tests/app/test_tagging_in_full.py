"""Tagging with all that a chain can tell, over HTTP, with real models."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tagsmith.app.tagging import chains
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem
from tests.training import train

TEXT = (
    b"Rockwell B-NP\nInternational I-NP\nsaid B-VP\n. O\n\n"
    b"It B-NP\nrose B-VP\n. O\n\nThe B-NP\nbig I-NP\nfirm I-NP\nsaid B-VP\nso O\n. O\n\n"
)
SENTENCE = ["The", "firm", "said", "so"]
LABELS = ["B-NP", "I-NP", "B-VP", "O"]


@pytest.fixture(scope="module", autouse=True)
def published(
    database: Database, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    corpus = conll.read_conll([TEXT] * 3, max_line_bytes=1000)
    trainer = {"kind": "sgd", "passes": 3}
    templates = {"nouns": "U:%x[0,0]\nU1:%x[-1,0]\nB", "rich": "U:%x[0,0]\nB\nBW:%x[0,0]"}
    new = NewVersion(
        objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    for name, text in templates.items():
        job = kinds.parse_job(samples.spec("crp_x", features={"templates": text}, trainer=trainer))
        path = Path(tmp_path_factory.mktemp("model")) / name
        file.save(finished(train(job, corpus, None)).model, path)
        with database.write() as conn:
            models.publish(conn, name, new, [path.read_bytes()])
    model = file.load(path)
    margin = path.with_name("margin")
    file.save(replace(model, usage=replace(model.usage, calibrated=False)), margin)
    with database.write() as conn:
        models.publish(conn, "margin", new, [margin.read_bytes()])
    with database.write() as conn:
        columns = samples.model_file("v1", Path(tmp_path_factory.mktemp("model")) / "columns")
        models.publish(conn, "columns", new, [columns])
    return {}


def tag(http: httpx.Client, **body: Any) -> dict[str, Any]:
    given = {"sentences": [SENTENCE]} if "text" not in body else {}
    response = http.post("/tag", json={"model": "nouns", **given, **body})
    assert response.status_code == 200, response.text
    return response.json()  # type: ignore[no-any-return]


def test_both_has_the_tags_and_the_spans_that_each_output_has(http: httpx.Client) -> None:
    options = {"marginals": True, "nbest": 2}
    both, tags, spans = (tag(http, output=each, **options) for each in ("both", "tags", "spans"))
    assert both | tags | spans | {"nbest": both["nbest"]} == both
    assert both["nbest"] == [{**tags["nbest"][0], **spans["nbest"][0]}]


@pytest.mark.parametrize("model", ["nouns", "rich"])
def test_the_whole_list_of_sequences_has_all_the_probability(http: httpx.Client, model: str) -> None:
    answer = tag(
        http, model=model, sentences=[SENTENCE[:3], []], nbest=100, marginals=True, distributions=True
    )
    found, of_nothing = answer["nbest"]
    assert sorted(map(tuple, found["tags"])) == sorted(product(answer["labels"], repeat=3))
    assert sum(found["probabilities"]) == pytest.approx(1.0, abs=1e-9)
    assert found["probabilities"] == sorted(found["probabilities"], reverse=True)
    assert answer["tags"] == [found["tags"][0], []]
    assert answer["probabilities"] == [found["probabilities"][0], 1.0]
    assert of_nothing == {"tags": [[]], "probabilities": [1.0]}
    for token in range(3):
        for number, label in enumerate(answer["labels"]):
            total = sum(p for tags, p in zip(*found.values(), strict=True) if tags[token] == label)
            assert answer["distributions"][0][token][number] == pytest.approx(total, abs=1e-6)
        place = answer["labels"].index(answer["tags"][0][token])
        assert answer["marginals"][0][token] == answer["distributions"][0][token][place]
    assert (answer["distributions"][1], answer["marginals"][1]) == ([], [])


def test_sequences_can_be_spans(http: httpx.Client) -> None:
    answer = tag(http, nbest=2, output="spans")
    assert set(answer) == {"model", "version", "spans", "nbest"}
    assert answer["nbest"][0]["spans"][0] == answer["spans"][0]
    assert answer["spans"][0] == [
        {"type": "NP", "start": 0, "stop": 2, "text": "The firm"},
        {"type": "VP", "start": 2, "stop": 3, "text": "said"},
    ]


def test_arrays_stand_beside_column_text(http: httpx.Client) -> None:
    answer = tag(http, output="conll", marginals=True, nbest=2)
    assert answer["conll"].splitlines()[0] == "The\tB-NP"
    assert len(answer["marginals"][0]) == 4
    assert len(answer["nbest"][0]["tags"]) == 2


def test_least_risk_takes_the_most_probable_tag_of_each_token(http: httpx.Client) -> None:
    answer = tag(http, decode="posterior", distributions=True)
    rows = answer["distributions"][0]
    assert answer["tags"][0] == [answer["labels"][int(np.argmax(row))] for row in rows]


def test_fixed_tags_are_kept(http: httpx.Client) -> None:
    for label in LABELS:
        constraints = {"tags": [[None, label, None, None], None]}
        answer = tag(http, sentences=[SENTENCE, ["It"]], constraints=constraints, marginals=True)
        assert answer["tags"][0][1] == label
        assert answer["marginals"][0][1] == 1.0
    answer = tag(http, constraints={"tags": [["O", "O", "O", "O"]]}, marginals=True, nbest=5)
    assert answer["nbest"] == [{"tags": [["O"] * 4], "probabilities": [1.0]}]


def test_forbidden_pairs_and_broken_codings_do_not_occur(http: httpx.Client) -> None:
    answer = tag(http, sentences=[SENTENCE[:3]], nbest=100, constraints={"forbid": [["B-NP", "B-NP"]]})
    sequences = answer["nbest"][0]["tags"]
    assert len(sequences) == 4**3 - 4 - 4 + 1
    valid = tag(http, sentences=[SENTENCE[:3]], nbest=100, constraints={"valid": "iob2"})["nbest"][0]
    allowed = [
        tags
        for tags in product(LABELS, repeat=3)
        if not any(tag == "I-NP" and (not i or tags[i - 1][2:] != "NP") for i, tag in enumerate(tags))
    ]
    assert sorted(map(tuple, valid["tags"])) == sorted(allowed)
    assert sum(valid["probabilities"]) == pytest.approx(1.0)
    strange = tag(http, sentences=[["big", "big"]], constraints={"valid": "iob2"})
    assert strange["tags"][0][0] != "I-NP"


def test_an_explanation_adds_up(http: httpx.Client) -> None:
    for model in ("nouns", "rich"):
        answer = tag(http, model=model, explain=[[0, 1], [0, 3]], distributions=True)
        assert [(each["sentence"], each["token"]) for each in answer["explain"]] == [(0, 1), (0, 3)]
        for each in answer["explain"]:
            assert each["chosen"]["tag"] == answer["tags"][0][each["token"]]
            for candidate in (each["chosen"], each["runner_up"]):
                total = sum(candidate["weights"]) + sum(candidate["transitions"]["weights"])
                assert candidate["score"] == pytest.approx(total)
            assert each["chosen"]["probability"] >= each["runner_up"]["probability"]
        (first, _) = answer["explain"]
        assert "U:firm" in first["chosen"]["features"]
        assert first["chosen"]["transitions"]["before"][0] == answer["tags"][0][0]
    assert len(tag(http, explain=True, sentences=[SENTENCE, [], ["It"]])["explain"]) == 5


def test_text_is_cut_into_tokens_and_spans_have_their_characters(http: httpx.Client) -> None:
    answer = tag(http, text="The firm, it said.\nIt rose", output="spans", marginals=True)
    assert answer["tokens"] == [["The", "firm", ",", "it", "said", ".", "It", "rose"]]
    assert answer["offsets"][0][-1] == [22, 26]
    assert answer["sentences"] == [[[0, 6], [6, 8]]]
    found = [{k: v for k, v in span.items() if k != "probability"} for span in answer["spans"][0]]
    assert {"type": "NP", "start": 0, "stop": 2, "begin": 0, "end": 8, "text": "The firm"} in found
    assert {"type": "NP", "start": 6, "stop": 7, "begin": 19, "end": 21, "text": "It"} in found
    assert all(0 < span["probability"] <= 1 for span in answer["spans"][0])
    parts = [tag(http, text=text, marginals=True) for text in ("The firm, it said.", "It rose")]
    assert answer["probabilities"][0] == pytest.approx(np.prod([p["probabilities"][0] for p in parts]))
    blanks = tag(http, text=["said so.", " \n"], tokenizer="blanks", explain=[[0, 1]], output="conll")
    assert blanks["tokens"] == [["said", "so."], []]
    assert blanks["conll"].splitlines()[1].startswith("so.\t")
    assert blanks["explain"][0]["token"] == 1
    assert tag(http, text="s o", tokenizer="characters")["tokens"] == [["s", "o"]]
    assert len(tag(http, text=["It rose", ""], nbest=3)["nbest"]) == 2


def test_sequences_of_a_text_join_those_of_its_sentences(http: httpx.Client) -> None:
    lists = [tag(http, text=text, nbest=100)["nbest"][0] for text in ("It rose.", "so")]
    first, second = (list(zip(each["tags"], each["probabilities"], strict=True)) for each in lists)
    (together,) = tag(http, text="It rose.\nso", nbest=100)["nbest"]
    pairs = sorted(((p * q, [*a, *b]) for a, p in first for b, q in second), key=lambda pair: -pair[0])
    np.testing.assert_allclose(together["probabilities"], [p for p, _ in pairs[:100]], rtol=1e-9)
    assert together["tags"][:3] == [tags for _, tags in pairs[:3]]
    (spans,) = tag(http, text="It rose.\nso", nbest=2, output="spans")["nbest"]
    assert {"type": "VP", "start": 1, "stop": 2, "begin": 3, "end": 7, "text": "rose"} in spans["spans"][0]


def test_text_can_be_split_by_a_pattern(http: httpx.Client) -> None:
    answer = tag(http, text="It-rose 9", tokenizer={"pattern": "[A-Z]?[a-z]+"})
    assert (answer["tokens"], answer["offsets"]) == ([["It", "rose"]], [[[0, 2], [3, 7]]])
    assert tag(http, text="It rose", tokenizer="whitespace")["tokens"] == [["It", "rose"]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "x" * 4000,
        "\u202eabc\u202c",
        "e\u0301te",
        "\U0001f469\u200d\U0001f467",
        "a\x00b",
        "It\r\nrose",
    ],
)
def test_offsets_are_those_of_the_text_given(http: httpx.Client, text: str) -> None:
    answer = tag(http, text=[text, "It rose"], output="spans", marginals=True)
    for tokens, offsets, given in zip(answer["tokens"], answer["offsets"], [text, "It rose"], strict=True):
        assert tokens == [given[start:stop] for start, stop in offsets]
    assert answer["tokens"][1] == ["It", "rose"]


@pytest.mark.parametrize("model", ["nouns", "rich", "columns"])
def test_the_example_of_a_signature_is_tagged(http: httpx.Client, model: str) -> None:
    found = http.get(f"/models/{model}/versions/1").json()["signature"]
    assert http.get(f"/models/{model}/versions").json()["data"][0]["signature"] == found
    answer = http.post("/tag", json={**found["example"], "distributions": True}).json()
    assert (answer["model"], answer["version"], answer["labels"]) == (model, 1, found["labels"])
    assert found["text"] is (model != "columns")
    assert len(found["columns"]) == (2 if model == "columns" else 1)
    if found["text"]:
        assert found["tokenizer"]["version"] == 2
        again = http.post("/tag", json={**found["example"], "tokenizer": found["tokenizer"]})
        assert again.json()["tokens"] == answer["tokens"] != [[]]


def test_an_error_says_what_the_model_takes(http: httpx.Client) -> None:
    for body in ({"text": "a"}, {"sentences": [["a"]]}, {"sentences": [[["a"]]]}):
        problem = http.post("/tag", json={"model": "columns", **body}).json()
        assert problem["detail"].startswith("This model needs 2 columns per token")
        assert "Send sentences of rows" in problem["detail"]


def test_probabilities_of_margin_models_are_marked(http: httpx.Client) -> None:
    assert tag(http, model="margin", marginals=True)["calibrated"] is False
    assert "calibrated" not in tag(http, model="margin")
    assert "calibrated" not in tag(http, model="rich", marginals=True)
    lines = '{"model": "margin", "marginals": true}\n{"text": "It rose"}\n'
    stream = http.post("/tag", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert '"calibrated":false' in stream.text.splitlines()[0]


@pytest.mark.parametrize(
    ("body", "status", "code", "pointer"),
    [
        ({"nbest": 0}, 422, "invalid_request", "/nbest"),
        ({"nbest": 101}, 422, "invalid_request", "/nbest"),
        ({"nbest": True}, 422, "invalid_request", "/nbest"),
        ({"marginals": 1}, 422, "invalid_request", "/marginals"),
        ({"decode": "best"}, 422, "invalid_request", "/decode"),
        ({"explain": "yes"}, 422, "invalid_request", "/explain"),
        ({"explain": [[0]]}, 422, "invalid_request", "/explain/0/1"),
        ({"explain": [[0, 4]]}, 422, "invalid_request", "/explain/0"),
        ({"explain": [[0, 0], [-1, 0]]}, 422, "invalid_request", "/explain/1"),
        ({"explain": [[0, 0]] * 1001}, 422, "invalid_request", "/explain"),
        ({"explain": True, "sentences": [["It"] * 1001]}, 413, "too_many_tokens", "/explain"),
        ({"constraints": {"valid": "bmes"}}, 422, "unknown_label_coding", "/constraints/valid"),
        ({"constraints": {"valid": "iob3"}}, 422, "invalid_request", "/constraints/valid"),
        ({"constraints": {"forbid": [["O"]]}}, 422, "invalid_request", "/constraints/forbid/0/1"),
        ({"constraints": {"forbid": [["O", "X"]]}}, 422, "unknown_label", "/constraints/forbid/0/1"),
        ({"constraints": {"tags": [["O"]]}}, 422, "constraints_do_not_fit", "/constraints/tags/0"),
        ({"constraints": {"tags": []}}, 422, "constraints_do_not_fit", "/constraints/tags"),
        ({"constraints": {"tags": [[1, None, None, None]]}}, 422, "invalid_request", "/constraints/tags/0/0"),
        ({"constraints": {"colour": 1}}, 422, "invalid_request", "/constraints/colour"),
        ({"tokenizer": "words"}, 422, "invalid_request", "/tokenizer"),
        ({"text": "a", "tokenizer": "sentences"}, 422, "invalid_request", "/tokenizer"),
        ({"text": "a", "tokenizer": {"pattern": "(a"}}, 422, "invalid_request", "/tokenizer"),
        ({"text": "a", "tokenizer": {"pattern": "^a"}}, 422, "invalid_request", "/tokenizer"),
        ({"text": "a", "tokenizer": {"kind": "words", "version": 9}}, 422, "invalid_request", "/tokenizer"),
        ({"text": "a", "constraints": {"tags": [["O"]]}}, 422, "invalid_request", "/constraints/tags"),
        ({"text": "a", "model": "columns"}, 422, "text_not_supported", "/text"),
        (
            {"constraints": {"valid": "iob2", "tags": [["I-NP", None, None, None]]}},
            422,
            "no_sequence_allowed",
            "/sentences/0",
        ),
    ],
)
def test_what_cannot_be_done_is_pointed_at(
    http: httpx.Client, body: dict[str, Any], status: int, code: str, pointer: str
) -> None:
    given = {} if "text" in body else {"sentences": [SENTENCE]}
    response = http.post("/tag", json={"model": "nouns", **given, **body})
    assert_problem(response, status, code, pointer=pointer)


@pytest.mark.parametrize("asked", [{"nbest": 2}, {"distributions": True}, {"explain": [[0, 0]]}])
def test_what_would_take_too_many_numbers_is_refused(
    http: httpx.Client, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains, "MAX_CELLS", 15)
    body = {"model": "nouns", "sentences": [SENTENCE], **asked}
    assert_problem(http.post("/tag", json=body), 413, "too_many_tokens", pointer=f"/{next(iter(asked))}")
