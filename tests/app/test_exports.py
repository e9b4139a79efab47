"""Corpora over HTTP in other formats than they came in."""

import io
import zipfile
from pathlib import Path

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem

IOB1 = b"Ada NNP I-PER\nLovelace NNP I-PER\nBob NNP B-PER\nran VBD O\n"


def upload(http: httpx.Client, content: bytes, **params: str) -> str:
    response = http.post("/corpora", params=params, content=content)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def test_without_a_format_the_text_is_what_was_uploaded(http: httpx.Client) -> None:
    corpus = upload(http, IOB1, labels="bioes")
    assert http.get(f"/corpora/{corpus}/content").content == IOB1


@pytest.mark.parametrize("written", ["conll", "ndjson", "brat"])
def test_the_document_has_the_type_of_the_answer(http: httpx.Client, written: str) -> None:
    answer = http.get(f"/corpora/{upload(http, IOB1)}/content", params={"format": written})
    assert answer.status_code == 200, answer.text
    responses = http.get("/openapi.json").json()["paths"]["/corpora/{corpus_id}/content"]["get"]["responses"]
    assert answer.headers["content-type"].partition(";")[0] in responses["200"]["content"]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"format": "conll"}, b"Ada NNP I-PER\nLovelace NNP I-PER\nBob NNP B-PER\nran VBD O\n\n"),
        (
            {"format": "conll", "labels": "bilou"},
            b"Ada NNP B-PER\nLovelace NNP L-PER\nBob NNP U-PER\nran VBD O\n\n",
        ),
        (
            {"format": "conllu", "columns": "form,xpos", "label": "misc", "labels": "iob2"},
            "".join(
                f"{number}\t{form}\t_\t_\t{tag}\t_\t_\t_\t_\t{label}\n"
                for number, form, tag, label in [
                    (1, "Ada", "NNP", "B-PER"),
                    (2, "Lovelace", "NNP", "I-PER"),
                    (3, "Bob", "NNP", "B-PER"),
                    (4, "ran", "VBD", "O\n"),
                ]
            ).encode(),
        ),
    ],
)
def test_a_corpus_is_written_in_the_format_and_the_coding_asked_for(
    http: httpx.Client, params: dict[str, str], expected: bytes
) -> None:
    response = http.get(f"/corpora/{upload(http, IOB1)}/content", params=params)
    assert response.status_code == 200, response.text
    assert response.content == expected


def test_a_brat_archive_comes_and_goes(http: httpx.Client, client: Client) -> None:
    response = http.get(f"/corpora/{upload(http, IOB1)}/content", params={"format": "brat"})
    assert response.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.read("part-00001.txt") == b"Ada Lovelace Bob ran\n"
        assert archive.read("part-00001.ann") == b"T1\tPER 0 12\tAda Lovelace\nT2\tPER 13 16\tBob\n"
    again = upload(http, response.content, format="brat")
    assert client.content(again) == response.content
    assert client.content(again, "conll") == b"Ada B-PER\nLovelace I-PER\nBob B-PER\nran O\n\n"


def test_segmented_text_is_written_with_the_options_it_came_with(http: httpx.Client, client: Client) -> None:
    corpus = upload(http, "迈向/v 新/a\n".encode(), format="segmented", tags="use", coding="2")
    assert client.content(corpus, "segmented").decode() == "迈向/v  新/a\n"
    assert client.content(corpus, "segmented", options={"tags": "strip"}).decode() == "迈向  新\n"
    assert client.content(corpus, "conll").decode() == "迈 B-v\n向 I-v\n新 B-a\n\n"


def test_faulty_labels_are_reported_and_repaired_only_when_asked(http: httpx.Client) -> None:
    text = b"a B-X\nb I-X\nc O\nd I-X\n"
    corpus = upload(http, text)
    report = http.get(f"/corpora/{corpus}/report").json()
    assert (report["bio_fault_count"], report["repaired_labels"]) == (1, 0)
    assert report["bio_faults"] == [{"sentence": 0, "token": 3, "label": "I-X", "previous": "O"}]
    refused = http.post("/corpora", params={"labels": "bioes"}, content=text)
    assert_problem(refused, 422, "label_faults", reason="sentence 0, token 3 (counted from 0): I-X after O")
    refused = http.get(f"/corpora/{corpus}/content", params={"format": "conll", "labels": "iob1"})
    assert_problem(refused, 422, "label_faults", reason="I-X after O")
    mended = upload(http, text, labels="bioes", repair="true")
    report = http.get(f"/corpora/{mended}/report").json()
    assert (report["label_scheme"], report["bio_fault_count"], report["repaired_labels"]) == ("BIOES", 0, 1)
    written = http.get(f"/corpora/{mended}/content", params={"format": "conll"})
    assert written.content == b"a B-X\nb E-X\nc O\nd S-X\n\n"


@pytest.mark.parametrize(
    ("params", "code", "parameter"),
    [
        ({"format": "docx"}, "unknown_format", "format"),
        ({"format": "conll", "labels": "iob3"}, "invalid_options", "labels"),
        ({"format": "conll", "repair": "perhaps"}, "invalid_options", "repair"),
        ({"format": "conllu"}, "invalid_options", "columns"),
        ({"labels": "iob2"}, "invalid_options", "labels"),
        ({"model": "chunker"}, "invalid_options", "model"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_first_byte(
    http: httpx.Client, chunker: None, params: dict[str, str], code: str, parameter: str
) -> None:
    response = http.get(f"/corpora/{upload(http, IOB1)}/content", params=params)
    assert_problem(response, 422, code, parameter=parameter)


@pytest.fixture(scope="module")
def chunker(database: Database, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A model that gives a name or an act to each token."""
    data = samples.model_file("x", Path(tmp_path_factory.mktemp("model")) / "model")
    new = models.NewVersion(
        objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
        seed=1, code_version="test", job_id=None,
    )  # fmt: skip
    with database.write() as conn:
        models.publish(conn, "chunker", new, [data])


def test_a_corpus_without_labels_is_tagged_and_written(
    http: httpx.Client, client: Client, chunker: None
) -> None:
    corpus = upload(http, b"Rockwell NNP\nsaid VBD\n\nIt PRP\n", labelled="false")
    written = client.content(corpus, "conll", "chunker")
    assert written == b"Rockwell NNP name-x\nsaid VBD act-x\n\nIt PRP name-x\n\n"
    missing = http.get(f"/corpora/{corpus}/content", params={"format": "conll", "model": "nobody"})
    assert missing.status_code == 404
