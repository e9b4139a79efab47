"""The usual mistakes of a first hour: each response names the mistake and the remedy."""

import socket
import urllib.error
import urllib.request
from typing import Any

import httpx
import pytest

from tagsmith.core.jobs import control, jobs
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def upload(http: httpx.Client, content: bytes = samples.TEXT, **params: str) -> str:
    response = http.post("/corpora", params=params, content=content)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


@pytest.mark.parametrize(
    ("changes", "pointer", "said"),
    [
        ({"trainer": {"kind": "sgd-l1", "pases": 1}}, "/trainer/pases", "did you mean `passes`? Known: "),
        ({"trainer": {"kind": "lbgfs"}}, "/trainer/kind", "did you mean `lbfgs`?"),
        ({"trainer": {"kind": "lbfgs", "l1": 1}}, "/trainer/l1", "use the trainer `owlqn`"),
        ({"trainer": "sgd-l1"}, "/trainer", 'such as {"kind": "sgd-l1"}'),
        ({"trainer": {"passes": 3}}, "/trainer/kind", "`kind` is missing. Give one of: sgd, "),
        ({"dev": 0.1}, "/dev", 'Write {"fraction": 0.1}'),
        ({"kind": None}, "/kind", "Give one of: train, "),
        ({"model": "NER"}, "/model", "did you mean ner?"),
        ({"model": "my model"}, "/model", "lower-case letters, digits, '.', '_' and '-', and begin with"),
        ({"model": "a/b"}, "/model", "did you mean a-b?"),
        ({"model": "Größe"}, "/model", "did you mean groe?"),
        ({"model": "漢字"}, "/model", "begin with a letter or digit."),
        ({"model": "x" * 65}, "/model", "at most 64 characters"),
        ({"init": "NER"}, "/init", "name, name@alias or name:version"),
        ({"features": "chunking"}, "/features", "Must be an object with some of the fields"),
        ({"features": {"preset": "chunkin"}}, "/features/preset", "did you mean `chunking`?"),
        ({"features": {"templates": "U:%x[0,wrod]"}}, "/features/templates", "did you mean word?"),
        ({"features": {"templates": 'u:%x[0,0]\n*:%t[0,0,"^a"]'}}, "/features/templates", 'Set "syntax" to "wapiti"'),
    ],
)  # fmt: skip
def test_a_mistake_in_a_spec_names_the_remedy(
    http: httpx.Client, changes: dict[str, Any], pointer: str, said: str
) -> None:
    spec = {key: value for key, value in samples.spec(upload(http), **changes).items() if value is not None}
    response = http.post("/jobs", json=spec)
    assert response.status_code == 422, response.text
    errors = response.json()["errors"]
    assert any(said in each["detail"] and each["pointer"] == pointer for each in errors), errors


def test_an_unlabelled_corpus_is_refused_before_a_job_is_queued(http: httpx.Client) -> None:
    plain = upload(http, b"Rockwell NNP\nsaid VBD\n", labelled="false")
    spec = samples.spec(plain)
    assert_problem(
        http.post("/jobs", json=spec), 422, "unlabelled_corpus", pointer="/corpus", reason="no labels"
    )
    spec = samples.spec(upload(http), dev={"corpus": plain})
    assert_problem(http.post("/jobs", json=spec), 422, "unlabelled_corpus", pointer="/dev/corpus")


def test_a_body_whose_line_breaks_curl_removed_is_recognised(http: httpx.Client) -> None:
    lost = samples.TEXT.replace(b"\n", b"")
    response = http.post("/corpora", content=lost, headers=FORM)
    problem = assert_problem(response, 422, "lost_line_breaks")
    assert "--data-binary" in problem["detail"]
    # `--data-binary` declares a form too.
    assert http.post("/corpora", content=samples.TEXT, headers=FORM).status_code == 201


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Ada B-PER\n".encode("utf-16"), "This is UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 FILE"),
        (b"%PDF-1.7\n", "This is a PDF file, not text."),
        (b"word,tag\nAda,B-PER\n", "This is a table with the header word, tag."),
        (b'[{"text": "Ada"}]', "This is one JSON array."),
    ],
)
def test_a_file_that_is_not_a_corpus_is_named(http: httpx.Client, content: bytes, said: str) -> None:
    response = http.post("/corpora", content=content)
    assert_problem(response, 422, "not_a_corpus", line=1, reason=said)


def test_a_misspelt_model_or_alias_is_suggested(http: httpx.Client, tmp_path: Any) -> None:
    model = samples.model_file("x", tmp_path / "model")
    assert http.post("/models/mistaken/versions", content=model).status_code == 201
    response = http.put("/models/mistaken/aliases/champion", json={"version": 1})
    assert response.status_code in (200, 201), response.text
    for path in ("/models/mistakn", "/models/mistakn/versions/1", "/models/mistakn/aliases"):
        assert "did you mean mistaken?" in http.get(path).json()["detail"]
    assert "did you mean champion?" in http.get("/models/mistaken/aliases/champoin").json()["detail"]
    sentences = [[["Rockwell", "NNP"]]]
    for reference, meant in (("mistakn", "mistaken"), ("mistaken@champoin", "champion")):
        response = http.post("/tag", json={"model": reference, "sentences": sentences})
        assert f"did you mean {meant}?" in response.json()["detail"]


def test_a_deleted_model_is_not_suggested(http: httpx.Client, tmp_path: Any) -> None:
    model = samples.model_file("x", tmp_path / "model")
    assert http.post("/models/forgotten/versions", content=model).status_code == 201
    assert http.delete("/models/forgotten").status_code == 204
    for name in ("forgotten", "forgottn"):
        assert http.delete(f"/models/{name}").json()["detail"] == f"There is no model {name}."


def test_a_model_in_its_first_training_names_the_job(http: httpx.Client, database: Database) -> None:
    with database.write() as conn:
        job = jobs.create(conn, kind="train", spec={}, model="unborn")
    said = f"There is no model unborn yet. Job {job.id} is training it."
    assert http.get("/models/unborn").json()["detail"] == said
    response = http.post("/tag", json={"model": "unborn", "sentences": [["Anna"]]})
    assert assert_problem(response, 404, "model_not_found", pointer="/model")["detail"] == said
    with database.write() as conn:
        control.cancel(conn, job.id)
    assert http.get("/models/unborn").json()["detail"] == "There is no model unborn."


def test_a_wrong_name_in_a_path_is_repaired(http: httpx.Client) -> None:
    for path, parameter in (("/models/NER", "name"), ("/models/ner/aliases/My alias", "alias")):
        problem = assert_problem(http.get(path), 422, "invalid_request")
        (fault,) = problem["errors"]
        assert fault["parameter"] == parameter
        assert "did you mean " in fault["detail"]


@pytest.mark.parametrize(
    ("request_", "pointer", "said"),
    [
        ({"sentences": ["Anna lives"]}, "/sentences/0", "Send raw text as `text`."),
        ({"sentences": "Anna lives"}, "/sentences", "Send raw text as `text`."),
        ({"text": "Anna", "tokenizer": "wrds"}, "/tokenizer", "Unknown tokenizer `wrds`; did you mean `words`?"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_tagging_request_names_the_remedy(
    http: httpx.Client, request_: dict[str, Any], pointer: str, said: str
) -> None:
    problem = assert_problem(http.post("/tag", json={"model": "m", **request_}), 422, "invalid_request")
    (fault,) = problem["errors"]
    assert (fault["pointer"], said in fault["detail"]) == (pointer, True), fault


@pytest.mark.parametrize(
    ("request_", "pointer", "said"),
    [
        ({"text": "x" * 5_001}, "/text", "5001 characters; a request may have 5000. Send several requests"),
        ({"text": "\n" * 1_000}, "/text", "1001 lines; a request may have 1000."),
        ({"sentences": [["x"] * 5_001]}, "/sentences", "5001 tokens; a request may have 5000."),
    ],
)  # fmt: skip
def test_a_request_that_is_too_large_says_what_counts(
    http: httpx.Client, request_: dict[str, Any], pointer: str, said: str
) -> None:
    response = http.post("/tag", json={"model": "m", **request_})
    assert_problem(response, 413, "too_many_tokens", pointer=pointer, reason=said)


def test_what_force_does_is_said_without_words_of_http(http: httpx.Client, tmp_path: Any) -> None:
    model = samples.model_file("x", tmp_path / "model")
    assert http.post("/models/served/versions", content=model).status_code == 201
    assert http.put("/models/served/aliases/champion", json={"version": 1}).status_code in (200, 201)
    problem = assert_problem(http.delete("/models/served"), 409, "model_in_use")
    assert problem["detail"].endswith("Repeat with force to delete it anyway.")
    assert http.delete("/models/served", params={"force": "true"}).status_code == 204


def test_one_faulty_line_is_not_called_several(http: httpx.Client) -> None:
    problem = assert_problem(http.post("/corpora", content=b"a X\nb\n"), 422, "invalid_corpus", line=2)
    assert problem["detail"].startswith("The corpus is invalid in 1 line. Correct it and try again.")


def test_a_wrong_method_names_the_right_ones(http: httpx.Client) -> None:
    problem = assert_problem(http.put("/jobs", json={}), 405, "method_not_allowed")
    assert problem["detail"] == "/jobs does not support PUT. It supports GET, POST."


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/jobs/validate", "POST"),  # not the GET and DELETE of /jobs/{job_id}
        ("/corpora/inspect", "POST"),
        ("/jobs/job_1", "GET, DELETE"),
        ("/page/main.js", "GET"),
    ],
)
def test_a_405_lists_the_methods_of_the_document(http: httpx.Client, path: str, allowed: str) -> None:
    response = http.request("OPTIONS", path)
    assert_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allowed


@pytest.mark.parametrize(("chunked", "status"), [(False, 413), (True, 422)])
def test_a_large_upload_that_is_refused_early_still_gets_its_response(
    server: ThreadServer, chunked: bool, status: int
) -> None:
    """urllib does not look for a response while it sends: with an unread body it sees a reset connection."""
    body = samples.TEXT * (14_000_000 // len(samples.TEXT))
    data: Any = iter([body]) if chunked else body
    request = urllib.request.Request(f"{server.url}/corpora?nosuch=1", data=data, method="POST")
    request.add_header("Content-Type", "text/plain")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    with refused.value as response:
        assert response.code == status
        assert b"urn:tagsmith:problem:" in response.read()


def test_a_client_that_waits_to_send_its_body_is_refused_without_it(server: ThreadServer) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /corpora?nosuch=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
            b"Content-Type: text/plain\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 422")
