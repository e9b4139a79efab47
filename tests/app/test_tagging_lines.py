"""Tagging a stream of lines, over HTTP, with real models."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem

TOKENS = [["Rockwell", "NNP"], ["said", "VBD"]]
NDJSON = {"Content-Type": "application/x-ndjson"}
NEW = NewVersion(
    objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
    seed=1, code_version="test", job_id=None,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def chunker(database: Database, server: ThreadServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("models")
    for mark in ("v1", "v2"):
        with database.write() as conn:
            models.publish(conn, "chunker", NEW, [samples.model_file(mark, folder / mark)])


def lines(*values: Any) -> bytes:
    return b"".join(v if isinstance(v, bytes) else json.dumps(v).encode() + b"\n" for v in values)


def post(http: httpx.Client, *values: Any) -> list[dict[str, Any]]:
    response = http.post("/tag", content=lines(*values), headers=NDJSON)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def test_every_line_is_answered_by_a_line_in_order(http: httpx.Client) -> None:
    found = post(
        http,
        {"model": "chunker:1"},
        {"tokens": TOKENS, "id": "a"},
        {"tokens": []},
        b"\n",
        {"tokens": TOKENS[1:], "id": 7},
    )
    assert found == [
        {"model": "chunker", "version": 1},
        {"line": 2, "id": "a", "tags": ["name-v1", "act-v1"]},
        {"line": 3, "tags": []},
        {"line": 4, "id": 7, "tags": ["act-v1"]},
    ]


def test_lines_are_answered_as_plain_requests_are(http: httpx.Client) -> None:
    options = {"model": "chunker:1", "marginals": True, "distributions": True, "nbest": 2, "explain": True}
    head, line = post(http, options, {"tokens": TOKENS})
    plain = http.post("/tag", json={**options, "sentences": [TOKENS]}).json()
    assert head["labels"] == plain["labels"]
    assert line["probability"] == plain["probabilities"][0]
    for name in ("tags", "marginals", "distributions", "nbest"):
        assert line[name] == plain[name][0]
    assert [{"sentence": 0, **each} for each in line["explain"]] == [
        {"sentence": each.pop("sentence"), **each} for each in plain["explain"]
    ]
    first, second = post(http, {"model": "chunker:1", "output": "conll"}, *[{"tokens": TOKENS}] * 2)[1:]
    assert first["conll"] == second["conll"] == "Rockwell\tNNP\tname-v1\nsaid\tVBD\tact-v1\n\n"


@pytest.mark.parametrize(
    ("line", "code", "pointer", "kind"),
    [
        (b"{nonsense\n", "malformed_json", None, None),
        ({"tokens": TOKENS, "text": "a"}, "invalid_request", "/tokens", "inconsistent"),
        ({}, "invalid_request", "/tokens", "missing"),
        ([], "invalid_spec", "", "model_type"),
        ({"tokens": "a"}, "invalid_spec", "/tokens", "list_type"),
        ({"tokens": [["Rockwell"]]}, "mixed_tokens", "/tokens/0", None),
        ({"tokens": [["Rockwell", 3]]}, "invalid_request", "/tokens/0/1", "string_type"),
        ({"tokens": [], "colour": 1}, "invalid_spec", "/colour", "extra_forbidden"),
        ({"text": "Rockwell said"}, "text_not_supported", "/text", None),
        (b'{"tokens": [{"a": 1, "a": 2}]}\n', "invalid_request", "/tokens", "duplicate_name"),
    ],
)
def test_a_bad_line_is_answered_by_an_error_and_the_next_goes_on(
    http: httpx.Client, line: Any, code: str, pointer: str | None, kind: str | None
) -> None:
    _, before, bad, after = post(http, {"model": "chunker:1"}, {"tokens": TOKENS}, line, {"tokens": TOKENS})
    assert before["tags"] == after["tags"] == ["name-v1", "act-v1"]
    assert (bad["line"], bad["error"]["code"], after["line"]) == (3, code, 4)
    if pointer is not None:
        assert bad["error"]["errors"][0]["pointer"] == pointer
        assert bad["error"]["errors"][0].get("type") == kind


@pytest.mark.parametrize(
    ("first", "status", "code", "pointer"),
    [
        (b"", 400, "malformed_json", None),
        (b"{\n", 400, "malformed_json", None),
        ({"sentences": []}, 422, "invalid_spec", "/model"),
        ({"model": "nobody"}, 404, "model_not_found", "/model"),
        ({"model": "chunker", "nbest": 0}, 422, "invalid_spec", "/nbest"),
        (
            {"model": "chunker", "constraints": {"valid": "bmes"}},
            422,
            "unknown_label_coding",
            "/constraints/valid",
        ),
        ({"model": "chunker", "constraints": {"tags": []}}, 422, "invalid_spec", "/constraints/tags"),
    ],
)
def test_a_wrong_first_line_is_refused_like_any_request(
    http: httpx.Client, first: Any, status: int, code: str, pointer: str | None
) -> None:
    response = http.post("/tag", content=lines(first), headers=NDJSON)
    assert_problem(response, status, code, **({"pointer": pointer} if pointer else {}))


class Conversation:
    """A request whose body is written while its answer is read."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        head = "POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        self._socket.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        self._answer = self._socket.makefile("rb")

    def say(self, value: Any) -> None:
        data = lines(value)
        self._socket.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def head(self) -> bytes:
        return b"".join(iter(self._answer.readline, b"\r\n"))

    def heard(self) -> Iterator[Any]:
        while size := int(self._answer.readline(), 16):
            yield from map(json.loads, self._answer.read(size).splitlines())
            self._answer.readline()

    def close(self) -> None:
        self._answer.close()
        self._socket.close()


def test_lines_are_answered_before_the_next_comes_and_by_one_version(
    server: ThreadServer, client: Client
) -> None:
    client.promote("chunker", 1)
    talk = Conversation(server.url)
    talk.say({"model": "chunker"})
    assert b"model-version: chunker:1" in talk.head().lower()
    heard = talk.heard()
    assert next(heard) == {"model": "chunker", "version": 1}
    talk.say({"tokens": TOKENS})
    assert next(heard)["tags"] == ["name-v1", "act-v1"]
    client.promote("chunker", 2)
    assert client.tag("chunker", [TOKENS]).version == 2
    talk.say({"tokens": TOKENS})
    assert next(heard)["tags"] == ["name-v1", "act-v1"]
    talk.end()
    assert list(heard) == []
    talk.close()


def test_a_line_that_is_too_long_ends_the_answer_with_an_error(
    server: ThreadServer, http: httpx.Client
) -> None:
    long = {"tokens": [["x" * 1_100, "NNP"]]}
    at_once = http.post("/tag", content=lines({"model": "chunker:1"}, long), headers=NDJSON)
    assert_problem(at_once, 413, "line_too_long")
    talk = Conversation(server.url)
    talk.say({"model": "chunker:1"})
    talk.head()
    heard = talk.heard()
    next(heard)
    talk.say(long)
    assert [each["error"]["code"] for each in heard] == ["line_too_long"]
    talk.close()


def test_a_client_that_goes_away_leaves_no_trace_of_a_fault(
    server: ThreadServer, http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Conversation(server.url)
    talk.say({"model": "chunker:1"})
    talk.head()
    talk.close()
    assert post(http, {"model": "chunker:1"}, {"tokens": TOKENS})[1]["tags"] == ["name-v1", "act-v1"]
    assert "unhandled" not in caplog.text


@pytest.mark.parametrize(
    "media_type",
    ["application/x-ndjson", "application/x-ndjson; charset=utf-8", "Application/X-NDJSON;charset=UTF-8"],
)
def test_a_stream_has_the_limit_of_uploads_whatever_parameters_its_media_type_has(
    settings: Settings, media_type: str
) -> None:
    body = lines({"model": "chunker:1"}, *[{"tokens": TOKENS}] * 200)
    changed = settings.replace(max_json_bytes=1_000, max_upload_bytes=len(body))
    with ThreadServer(changed) as server, httpx.Client(base_url=server.url, timeout=30) as http:
        headers = {"Content-Type": media_type}
        response = http.post("/tag", content=body, headers=headers)
        assert (response.status_code, len(response.text.splitlines())) == (200, 201)
        assert_problem(http.post("/tag", content=body + b"\n", headers=headers), 413, "body_too_large")
        json_body = {"model": "chunker:1", "sentences": [TOKENS] * 200}
        assert_problem(http.post("/tag", json=json_body), 413, "body_too_large")
