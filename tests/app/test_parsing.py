"""Parsing over HTTP with real parsers: trees, probabilities, CoNLL-U, streams, explanations, and what is refused."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tagsmith.app.tagging import answers, trees
from tagsmith.core.corpus.formats import registry as formats
from tagsmith.core.corpus.trees import fault_in
from tagsmith.core.model import file
from tagsmith.core.model.parser import parse
from tagsmith.core.model.parsing.explanation import explain_arcs
from tagsmith.core.model.tagger import Tagger
from tagsmith.core.registry import models
from tagsmith.core.store.engine import Database
from tests import parsers
from tests.app import samples
from tests.app.samples import NEW
from tests.app.servers import ThreadServer, assert_problem

ROWS = [
    ["the", "the", "DET", "_"],
    ["offer", "offer", "NOUN", "Number=Sing"],
    ["appeared", "appear", "VERB", "_"],
    [".", ".", "PUNCT", "_"],
]
WORDS = [row[0] for row in ROWS]
TEXT = "the offer appeared. The order appeared."


@pytest.fixture(scope="module", autouse=True)
def published(database: Database, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parsers of four columns, of text, without relations, and of a margin trainer; and a tagger."""
    folder = tmp_path_factory.mktemp("parsers")
    files = {
        "parser": parsers.model_file(),
        "words": parsers.model_file("form"),
        "bare": parsers.model_file("form", relations=False),
        "tagger": samples.model_file("v1", folder / "tagger"),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    # The kernels are compiled here, not in a request.
    for name in ("parser", "words"):
        tagger = Tagger.open(folder / name)
        coded = tagger.code([[["-"] * tagger.columns] * 2])
        list(explain_arcs(tagger, coded, parse(tagger, coded, probabilities=True), [(0, 0)]))
    margin = file.load(folder / "words")
    file.save(replace(margin, usage=replace(margin.usage, calibrated=False)), folder / "margin")
    with database.write() as conn:
        for name in (*files, "margin", "parser"):
            models.publish(conn, name, NEW, [(folder / name).read_bytes()])
    return folder


def tag(http: httpx.Client, model: str = "parser", **body: Any) -> dict[str, Any]:
    sentences = [ROWS] if model == "parser" else [WORDS]
    given = {} if "text" in body else {"sentences": sentences}
    response = http.post("/tag", json={"model": model, **given, **body})
    assert response.status_code == 200, response.text
    return response.json()  # type: ignore[no-any-return]


def is_tree(heads: Sequence[int]) -> bool:
    return fault_in(np.array(heads, np.int32), np.array([0, len(heads)])) is None


def test_a_parser_answers_heads_and_relations_as_its_file_does(http: httpx.Client, published: Path) -> None:
    sentences = [ROWS, [], ROWS[1:]]
    found = tag(http, sentences=sentences)
    assert set(found) == {"model", "version", "heads", "relations"}
    expected = Tagger.open(published / "parser").parse(sentences)
    assert found["heads"] == [each.heads for each in expected]
    assert found["relations"] == [each.relations for each in expected]
    assert found["heads"][0] == [2, 3, 0, 3]
    assert found["relations"][0] == ["det", "nsubj", "root", "punct"]


def test_a_parser_without_relations_answers_none(http: httpx.Client) -> None:
    found = tag(http, "bare", marginals=True, explain=[[0, 0]])
    assert set(found) == {"model", "version", "heads", "marginals", "probabilities", "arcs"}
    assert found["arcs"][0]["relation"] is None
    assert tag(http, "bare", output="conllu")["conllu"].splitlines()[0].split("\t")[6:8] == [
        str(found["heads"][0][0]), "_",
    ]  # fmt: skip


def test_probabilities_are_those_of_arcs_with_and_without_relations_and_of_the_tree(
    http: httpx.Client, published: Path
) -> None:
    found = tag(http, marginals=True)
    tagger = Tagger.open(published / "parser")
    parsed = parse(tagger, tagger.code([ROWS]), probabilities=True)
    assert found["marginals"] == [pytest.approx(parsed.arc_probabilities.tolist())]
    assert found["relation_marginals"] == [pytest.approx(parsed.relation_probabilities.tolist())]
    assert found["probabilities"] == [pytest.approx(math.exp(parsed.log_probabilities[0]))]
    for arc, labelled in zip(found["marginals"][0], found["relation_marginals"][0], strict=True):
        assert found["probabilities"][0] - 1e-9 <= arc <= 1
        assert 0 < labelled <= arc
    assert "calibrated" not in found
    assert tag(http, "margin", marginals=True)["calibrated"] is False
    assert "calibrated" not in tag(http, "margin")


def test_heads_of_a_text_are_numbers_of_its_tokens(http: httpx.Client) -> None:
    found = tag(http, "words", text=[TEXT, "", "it appeared."], marginals=True)
    assert found["tokens"][0] == ["the", "offer", "appeared", ".", "The", "order", "appeared", "."]
    assert found["sentences"] == [[[0, 4], [4, 8]], [], [[0, 3]]]
    assert list(map(len, found["heads"])) == list(map(len, found["relations"])) == [8, 0, 3]
    sentences = [found["tokens"][0][a:b] for a, b in found["sentences"][0]]
    apart = tag(http, "words", sentences=sentences, marginals=True)
    assert found["heads"][0] == apart["heads"][0] + [head and head + 4 for head in apart["heads"][1]]
    assert found["relations"][0] == [*apart["relations"][0], *apart["relations"][1]]
    assert found["probabilities"][0] == pytest.approx(math.prod(apart["probabilities"]))
    assert found["probabilities"][1] == 1
    begin, end = found["offsets"][0][1]
    assert TEXT[begin:end] == "offer"


def test_conllu_has_the_columns_by_name_and_is_read_as_the_same_trees(http: httpx.Client) -> None:
    found = tag(http, sentences=[ROWS, ROWS[:3]])
    written = tag(http, sentences=[ROWS, ROWS[:3]], output="conllu")
    assert set(written) == {"model", "version", "conllu"}
    assert written["conllu"].splitlines()[1] == "2\toffer\toffer\tNOUN\t_\tNumber=Sing\t3\tnsubj\t_\t_"
    options = {"columns": parsers.COLUMNS, "label": "tree"}
    read = formats.read([written["conllu"].encode()], "conllu", max_line_bytes=1000, options=options)
    assert read.trees is not None
    assert read.trees.heads.tolist() == [head for heads in found["heads"] for head in heads]
    assert read.offsets.tolist() == [0, 4, 7]


def test_conllu_of_a_text_has_its_sentences_apart(http: httpx.Client) -> None:
    lines = tag(http, "words", text=TEXT, output="conllu")["conllu"].split("\n")
    assert [line.split("\t")[0] for line in lines] == ["1", "2", "3", "4", "", "1", "2", "3", "4", "", ""]
    assert all(int(line.split("\t")[6]) <= 4 for line in lines if line)


def test_column_text_has_head_and_relation_at_the_end(http: httpx.Client) -> None:
    assert tag(http, output="conll")["conll"].splitlines()[0] == "the\tthe\tDET\t_\t2\tdet"


@pytest.mark.parametrize("output", ["tags", "conllu", "conll"])
def test_a_stream_gives_the_trees_of_its_lines(http: httpx.Client, output: str) -> None:
    first = {"model": "words", "marginals": True, "explain": True, "output": output}
    given = [
        {"id": "a", "tokens": WORDS},
        {"text": TEXT},
        {"tokens": 3},
        {"tokens": WORDS[:2]},
    ]
    body = "".join(json.dumps(each) + "\n" for each in [first, *given])
    response = http.post("/tag", content=body, headers={"content-type": "application/x-ndjson"})
    head, *lines = map(json.loads, response.text.splitlines())
    assert head == {"model": "words", "version": 1}
    assert lines[2]["error"]["code"] == "invalid_spec"
    whole = tag(http, "words", sentences=[WORDS, WORDS[:2]], marginals=True, explain=True)
    for i, line in ((0, lines[0]), (1, lines[3])):
        assert line["marginals"] == pytest.approx(whole["marginals"][i])
        assert line["probability"] == pytest.approx(whole["probabilities"][i])
        assert [each["head"]["head"] for each in line["arcs"]] == whole["heads"][i]
        if output == "tags":
            assert (line["heads"], line["relations"]) == (whole["heads"][i], whole["relations"][i])
        else:
            assert len(line[output].splitlines()) == len(whole["heads"][i]) + 1
    assert len(lines[1]["arcs"]) == 8


def test_an_explanation_adds_up_and_has_the_best_other_head_and_relation(http: httpx.Client) -> None:
    found = tag(http, marginals=True, explain=[[0, 1], [0, 3], [0, 1]])
    first, second, again = found["arcs"]
    assert first == again
    assert (first["sentence"], first["token"], second["token"]) == (0, 1, 3)
    assert first["head"]["head"] == found["heads"][0][1]
    assert first["head"]["probability"] == pytest.approx(found["marginals"][0][1])
    assert first["runner_up"]["head"] not in (first["head"]["head"], 2)
    assert 0 < first["runner_up"]["probability"] < first["head"]["probability"]
    assert first["relation"]["relation"] == found["relations"][0][1]
    joint = first["relation"]["probability"] * first["head"]["probability"]
    assert joint == pytest.approx(found["relation_marginals"][0][1])
    for choice in (first["head"], first["runner_up"], first["relation"], first["other_relation"]):
        assert choice["score"] == pytest.approx(sum(choice["weights"]), abs=1e-4)
        assert len(choice["features"]) == len(choice["weights"]) > 0


def test_an_explanation_of_a_text_names_its_tokens(http: httpx.Client) -> None:
    found = tag(http, "words", text=["it appeared.", TEXT], explain=[[1, 5], [0, 1], [1, 0]])
    assert [(each["sentence"], each["token"]) for each in found["arcs"]] == [(1, 5), (0, 1), (1, 0)]
    for each in found["arcs"]:
        assert each["head"]["head"] == found["heads"][each["sentence"]][each["token"]]
    assert found["arcs"][0]["runner_up"]["head"] in (0, 5, 7, 8)


@pytest.mark.parametrize(
    ("body", "pointer", "reason"),
    [
        ({"output": "spans"}, "/output", "not spans"),
        ({"output": "both"}, "/output", "not spans"),
        ({"decode": "posterior"}, "/decode", "Leave `decode` out"),
        ({"distributions": True}, "/distributions", "Send `marginals`"),
        ({"nbest": 2}, "/nbest", "Leave `nbest` out"),
        ({"constraints": {"valid": "iob2"}}, "/constraints", "Leave `constraints` out"),
        ({"explain": [[0, 9]]}, "/explain/0", "no token 9"),
        ({"sentences": [[["a", "b"]]]}, "/sentences/0/0", ""),
    ],
)
def test_what_only_taggers_can_do_is_refused_with_its_place(
    http: httpx.Client, body: dict[str, Any], pointer: str, reason: str
) -> None:
    response = http.post("/tag", json={"model": "parser", "sentences": [ROWS], **body})
    assert response.status_code == 422, response.text
    (place, *_) = response.json()["errors"]
    assert place["pointer"] == pointer
    assert reason in place["detail"]
    if "explain" not in body and "sentences" not in body:
        line = json.dumps({"model": "parser", **body}) + "\n"
        streamed = http.post("/tag", content=line, headers={"content-type": "application/x-ndjson"})
        assert streamed.status_code == 422
        assert streamed.json()["errors"][0]["pointer"] == pointer


def test_a_tagger_gives_no_conllu_and_a_parser_of_columns_takes_no_text(http: httpx.Client) -> None:
    body = {"model": "tagger", "sentences": [[["Rockwell", "NNP"]]], "output": "conllu"}
    assert_problem(
        http.post("/tag", json=body), 422, "invalid_request", pointer="/output", reason="not trees"
    )
    response = http.post("/tag", json={"model": "parser", "text": TEXT})
    assert_problem(response, 422, "text_not_supported", pointer="/text")


def test_a_token_that_conllu_cannot_hold_is_refused_with_its_place(http: httpx.Client) -> None:
    rows = [*ROWS[:2], ["a", "a", "two words", "_"]]
    response = http.post("/tag", json={"model": "parser", "sentences": [rows], "output": "conllu"})
    assert_problem(response, 422, "unwritable_token", pointer="/sentences/0/2")


def test_a_sentence_that_needs_too_much_memory_is_refused_and_the_server_stays_alive(
    http: httpx.Client,
) -> None:
    for body in ({"sentences": [["w"] * 5000]}, {"text": "w " * 2500}):
        response = http.post("/tag", json={"model": "words", **body})
        assert_problem(
            response, 413, "too_many_tokens", reason="takes more than 128 MiB. Send shorter sentences."
        )
    assert http.get("/livez").status_code == 200


@pytest.mark.parametrize(
    ("limit_s", "more"), [(2.0, {}), (5.0, {"marginals": True}), (5.0, {"explain": [[0, 0]]})]
)
def test_work_that_grows_with_the_length_of_sentences_is_limited(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, limit_s: float, more: dict[str, Any]
) -> None:
    """Two sentences of 1,000 words take some 2 seconds, and 7 with probabilities."""
    monkeypatch.setattr(trees, "MAX_WORK_S", limit_s)
    tag(http, "words", sentences=[["a"] * 100] * 2, **more)
    body = {"model": "words", "sentences": [["a"] * 1000] * 2, **more}
    response = http.post("/tag", json=body)
    assert_problem(response, 413, "too_many_tokens", pointer="/sentences", reason="Send fewer or shorter")


def test_many_sentences_are_parsed_in_parts_with_places_in_the_whole(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [ROWS[: 1 + i % 4] for i in range(20)]
    whole = tag(http, sentences=sentences, marginals=True)
    monkeypatch.setattr(answers, "PART_TOKENS", 7)
    assert tag(http, sentences=sentences, marginals=True) == whole
    assert all(map(is_tree, whole["heads"]))
    response = http.post("/tag", json={"model": "parser", "sentences": [*sentences, [["a"]]]})
    assert response.json()["errors"][0]["pointer"] == "/sentences/20/0"


def test_large_requests_have_the_trees_of_small_ones(http: httpx.Client) -> None:
    sentences = [WORDS] * 200  # more than is parsed on the event loop, and a body that is read in a thread
    found = tag(http, "words", sentences=sentences)
    assert {tuple(heads) for heads in found["heads"]} == {tuple(tag(http, "words")["heads"][0])}
    assert len(found["heads"]) == 200


def test_nothing_gives_nothing(http: httpx.Client) -> None:
    assert tag(http, "words", sentences=[])["heads"] == []
    found = tag(http, "words", sentences=[[]], marginals=True, explain=True)
    assert (found["heads"], found["probabilities"], found["arcs"]) == ([[]], [1.0], [])
    assert tag(http, "words", sentences=[[]], output="conllu")["conllu"] == ""


def test_the_signature_of_a_parser_says_what_it_is(http: httpx.Client) -> None:
    signature = http.get("/models/parser/versions/1").json()["signature"]
    assert signature["structure"] == "tree"
    assert "nsubj" in signature["labels"]
    assert "(head)" not in signature["labels"]
    assert signature["columns"] == parsers.COLUMNS.split(",")
    response = http.post("/tag", json=signature["example"])
    assert is_tree(response.json()["heads"][0])
    assert http.get("/models/tagger/versions/1").json()["signature"]["structure"] == "chain"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("versions/1/features?label=nsubj&top=3", 200),
        ("versions/1/features?label=(head)", 200),
        ("versions/1/transitions", 200),
        ("versions/1/templates", 200),
        ("versions/1/weights", 200),
        ("versions/1/artifact", 200),
        ("versions/1/artifact?format=json", 422),
        ("versions/1/artifact?format=crfsuite", 422),
        ("versions/1/artifact?format=wapiti", 422),
        ("compare?base=1&head=2", 200),
    ],
)
def test_a_parser_can_be_looked_into(http: httpx.Client, path: str, status: int) -> None:
    response = http.get(f"/models/parser/{path}")
    assert response.status_code == status, response.text
    if status == 200 and "features" in path:
        assert response.json()["data"]
