"""Input that was made to take time or memory, or to reach code that expects something else."""

import gzip
import io
import json
import socket
import zipfile
from functools import partial
from typing import Any

import httpx
import numpy as np
import pytest

from tagsmith.app.http import bodies, pace, problems
from tagsmith.app.reading import uploads
from tagsmith.app.tagging import parsing, service
from tagsmith.app.tagging.spans import _joined
from tagsmith.core.base.errors import Invalid, TooLarge
from tagsmith.core.features import resolve
from tagsmith.core.model.decoding import Decoded
from tests.app.servers import ThreadServer

JSON = {"Content-Type": "application/json"}
#: Deeper than calls of Python, and not too deep for the parser.
DEEP = 990


def test_faults_are_listed_up_to_a_limit_and_names_compared_only_for_these(http: httpx.Client) -> None:
    many = {f"model{i}": 0 for i in range(20_000)}
    for path, body in (
        ("/jobs/validate", {"kind": "train", **many}),
        ("/tag", {"model": "m", "text": [0] * 60_000}),
    ):
        response = http.post(path, json=body)
        assert response.status_code == 422
        assert 1 <= len(response.json()["errors"]) <= 100


def test_a_chain_of_derived_columns_is_walked_once_per_column(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[Any] = []
    walk = resolve._Columns._walked
    monkeypatch.setattr(
        resolve._Columns, "_walked", lambda self, column: walked.append(column) or walk(self, column)
    )
    derived = {f"l{i}": {"kind": "lower", "of": f"l{i - 1}" if i else 0} for i in range(40)}
    grams = {"grams": [8, 8], "columns": ["word", *derived], "window": 16}
    body = {"features": {"derived": derived, "templates": [grams]}, "sentence": ["a"]}
    assert http.post("/features/preview", json=body).status_code in (200, 422)
    assert len(walked) <= 5 * 41


@pytest.mark.parametrize("nested", [b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP + b"]" * DEEP])
def test_nesting_is_refused_wherever_it_is(http: httpx.Client, nested: bytes) -> None:
    token = b'{"w": "a", "x": ' + nested + b"}"
    padding = b'"' + b"x" * parsing.PIECE_BYTES + b'"'
    large = b'{"model": "m", "sentences": [[' + token + b"], [{" + padding + b": 1}]]}"
    assert 400 <= http.post("/tag", content=large, headers=JSON).status_code < 500
    response = http.post(
        "/corpora/inspect?format=ndjson", content=b'{"tokens": ["a"], "tags": ["A"], "z": ' + nested + b"}\n"
    )
    assert response.status_code in (200, 422)


def test_a_comma_without_a_token_is_refused_in_large_bodies_too() -> None:
    blanks = b" " * (2 * parsing.PIECE_BYTES)
    for inner in (b"[" + blanks + b',"a"]', b"[" + blanks + b',["a"]]'):
        with pytest.raises(Exception, match="not valid JSON"):
            parsing.read(b'{"model": "m", "sentences": [' + inner + b"]}", 10)


def test_a_token_has_a_limit_of_bytes() -> None:
    token = b'"' + b"x" * (2 * parsing.MAX_TOKEN_BYTES) + b'"'
    with pytest.raises(TooLarge, match="A token has more than"):
        parsing.read(b'{"model": "m", "sentences": [[' + token + b"]]}", 10)


def test_a_member_of_an_archive_without_a_name_is_refused(http: httpx.Client) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(".", "text")
    response = http.post("/corpora?format=brat", content=packed.getvalue())
    assert 400 <= response.status_code < 500


def test_the_name_of_a_file_has_no_control_characters(http: httpx.Client) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a\x00\x1b[31mb"\r\n\r\n'
    body = head + b"Ada B-PER\n\n\r\n--b--\r\n"
    response = http.post(
        "/corpora?format=conll", content=body, headers={"Content-Type": "multipart/form-data; boundary=b"}
    )
    assert (response.status_code, response.json()["name"]) == (201, "a[31mb")


@pytest.mark.parametrize("path", ["/corpora?format=conll", "/tag", "/jobs"])
@pytest.mark.parametrize("begun", ["", " "])
def test_a_body_that_stops_is_given_up_with_its_connection(
    server: ThreadServer, monkeypatch: pytest.MonkeyPatch, path: str, begun: str
) -> None:
    monkeypatch.setattr(pace, "GRACE_S", 0.3)
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 1000\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n{begun}".encode())
        answer = b"".join(iter(partial(connection.recv, 4096), b""))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"body_timeout" in answer


def test_a_small_file_of_a_large_repetitive_text_is_read_whole(http: httpx.Client) -> None:
    # Small enough to be read in the process that serves, until its text is found to be too large for that.
    text = ("\n".join(f"repeated{k} O" for k in range(20)) + "\n\n").encode() * 1500
    packed = gzip.compress(text)
    assert len(packed) < uploads.INLINE_BYTES < len(text)
    response = http.post("/corpora?format=conll", content=packed)
    assert response.status_code == 201, response.text
    assert response.json()["sentences"] == 1500


def test_very_many_faults_are_counted_and_not_described() -> None:
    raw = json.dumps(dict.fromkeys((f"a{i}" for i in range(parsing.MOST_DESCRIBED + 1)), 1)).encode()
    with pytest.raises(Invalid) as caught:
        parsing.parse(raw, None)
    (fault,) = caught.value.faults
    assert fault.reason.startswith("The request has 10,00")


class _Model:
    """What the decision about threads needs of a model."""

    def __init__(self, labels: int, steps: int) -> None:
        self.tagger = self
        self.is_parser = False
        self.transitions_per_token = labels * labels
        self.steps_per_character = steps


@pytest.mark.parametrize(("labels", "steps", "quick"), [(20, 0, True), (4_096, 0, False), (20, 6_000, False)])
def test_models_that_take_long_are_not_run_on_the_event_loop(labels: int, steps: int, quick: bool) -> None:
    assert service._is_quick(_Model(labels, steps), 500, 0, 2_500) is quick  # type: ignore[arg-type]


def test_the_best_combinations_of_sentences_are_those_of_all_combinations() -> None:
    rng = np.random.default_rng(1)
    shape = (5, 3)
    probabilities = -np.sort(-rng.random(shape), axis=1)
    decoded = Decoded.__new__(Decoded)
    object.__setattr__(decoded, "path_probabilities", probabilities)
    object.__setattr__(decoded, "path_counts", np.full(5, 3))
    choices, logs = _joined(decoded, 0, 5, 7)
    everything = np.array(list(np.ndindex(*[3] * 5)))
    totals = np.log(probabilities[np.arange(5), everything]).sum(axis=1)
    best = np.argsort(-totals, kind="stable")[:7]
    assert np.allclose(logs, totals[best])
    assert np.array_equal(choices, everything[best])


def test_deep_objects_are_refused_where_names_are_compared() -> None:
    with pytest.raises(problems.Malformed) as raised:
        bodies.refuse_repeated_names(b"[" * DEEP + b"]" * DEEP)
    assert raised.value.code == "json_too_deep"
