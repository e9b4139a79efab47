"""Tagging over HTTP with real models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tagsmith.app.tagging import answers, service
from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem
from tests.services import wait_until

TOKENS = [["Rockwell", "NNP"], ["said", "VBD"]]

Publish = Callable[[str, str], int]


@pytest.fixture(scope="module")
def publish(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Publish:
    folder = tmp_path_factory.mktemp("models")
    made: dict[str, bytes] = {}

    def make(name: str, mark: str) -> int:
        data = made.get(mark) or made.setdefault(mark, samples.model_file(mark, folder / mark))
        new = NewVersion(
            objective=None, active_features=1, train_seconds=0.0, metrics={}, trainer={}, spec={}, corpus=None,
            seed=1, code_version="test", job_id=None,
        )  # fmt: skip
        with database.write() as conn:
            return models.publish(conn, name, new, [data]).version

    return make


@pytest.fixture(scope="module", autouse=True)
def chunker(publish: Publish, server: ThreadServer) -> None:
    publish("chunker", "v1")


def tag(http: httpx.Client, **body: Any) -> dict[str, Any]:
    response = http.post("/tag", json={"model": "chunker:1", "sentences": [TOKENS], **body})
    assert response.status_code == 200, response.text
    return response.json()  # type: ignore[no-any-return]


def test_an_answer_names_the_version_and_has_a_tag_for_each_token(http: httpx.Client) -> None:
    response = http.post("/tag", json={"model": "chunker", "sentences": [TOKENS, TOKENS[:1], []]})
    assert response.json() == {
        "model": "chunker",
        "version": 1,
        "tags": [["name-v1", "act-v1"], ["name-v1"], []],
    }
    assert response.headers["model-version"] == "chunker:1"
    assert response.headers["content-type"] == "application/json"


def test_no_sentences_give_no_tags(http: httpx.Client) -> None:
    assert tag(http, sentences=[])["tags"] == []


def test_spans_are_typed_stretches_of_tokens(http: httpx.Client) -> None:
    answer = tag(http, output="spans")
    assert set(answer) == {"model", "version", "spans"}
    assert all(
        set(span) == {"type", "start", "stop", "text"} for sentence in answer["spans"] for span in sentence
    )


def test_conll_is_the_columns_and_the_tag(http: httpx.Client) -> None:
    answer = tag(http, sentences=[TOKENS, TOKENS[:1]], output="conll")
    assert answer == {
        "model": "chunker",
        "version": 1,
        "conll": "Rockwell\tNNP\tname-v1\nsaid\tVBD\tact-v1\n\nRockwell\tNNP\tname-v1\n\n",
    }
    assert tag(http, sentences=[], output="conll")["conll"] == ""


def test_a_token_that_column_text_cannot_hold_is_pointed_at(http: httpx.Client) -> None:
    body = {"model": "chunker", "sentences": [TOKENS, [["two words", "NNP"]]], "output": "conll"}
    assert_problem(http.post("/tag", json=body), 422, "unwritable_token", pointer="/sentences/1/0")


@pytest.mark.parametrize("sentences", [1, 400])
def test_small_and_large_requests_are_answered_alike(http: httpx.Client, sentences: int) -> None:
    answer = tag(http, sentences=[TOKENS] * sentences)
    assert answer["tags"] == [["name-v1", "act-v1"]] * sentences


@pytest.mark.parametrize(
    ("sentences", "pointer"),
    [
        ([[["Rockwell", "NNP"], ["said", 3]]], "/sentences/0/1/1"),
        ([[["Rockwell", "NNP"], 3]], "/sentences/0/1"),
        ([[["Rockwell", "NNP"], "said"]], "/sentences/0/1"),
        ([[["Rockwell", {"tag": "NNP"}]]], "/sentences/0/0/1"),
        ([[True]], "/sentences/0/0"),
        ([[["Rockwell", "NNP"], None]], "/sentences/0/1"),
        ([[["Rockwell", "NNP"]], [["said"]]], "/sentences/1/0"),
        ([["Rockwell"]], "/sentences/0"),
    ],
)
def test_a_token_that_does_not_fit_the_model_is_pointed_at(
    http: httpx.Client, sentences: Any, pointer: str
) -> None:
    response = http.post("/tag", json={"model": "chunker", "sentences": sentences})
    assert response.status_code == 422
    problem = assert_problem(response, 422, response.json()["code"])
    assert problem["errors"][0]["pointer"].startswith(pointer)


def test_sentences_are_tagged_in_parts_with_places_in_the_whole(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [[["Rockwell", "NNP"], ["said", "VBD"]][: 1 + i % 2] for i in range(20)]
    whole = tag(http, sentences=sentences)
    monkeypatch.setattr(answers, "PART_TOKENS", 7)
    assert tag(http, sentences=sentences) == whole
    response = http.post("/tag", json={"model": "chunker", "sentences": [*sentences, [["a"]]]})
    assert_problem(response, 422, "mixed_tokens", pointer="/sentences/20/0")


def test_every_field_may_be_given_at_its_default(http: httpx.Client) -> None:
    assert tag(http, marginals=False, nbest=1, constraints=None, explain=False)["tags"]


def test_a_reference_is_a_name_an_alias_or_a_number(client: Client, publish: Publish) -> None:
    publish("referred", "v1")
    publish("referred", "v2")

    def version(reference: str) -> int:
        answer = client.tag(reference, [TOKENS])
        assert answer.tags == [[f"name-v{answer.version}", f"act-v{answer.version}"]]
        return answer.version

    assert (version("referred"), version("referred:1"), version("referred:2")) == (2, 1, 2)
    client.promote("referred", 1, "canary")
    assert (version("referred"), version("referred@canary")) == (2, 1)
    client.promote("referred", 1)
    assert (version("referred"), version("referred@champion")) == (1, 1)
    client.promote("referred", 2)
    assert (version("referred"), version("referred@champion"), version("referred@canary")) == (2, 2, 1)
    assert client.rollback("referred").version == 1
    assert version("referred") == 1


def test_what_a_model_lacks_is_not_found(http: httpx.Client) -> None:
    for reference, code in (("chunker:99", "version_not_found"), ("chunker@nobody", "alias_not_found")):
        body = {"model": reference, "sentences": [TOKENS]}
        assert_problem(http.post("/tag", json=body), 404, code, pointer="/model")


def test_a_version_published_elsewhere_is_found_at_its_first_request(
    client: Client, publish: Publish
) -> None:
    assert client.tag("chunker", [TOKENS]).version >= 1
    number = publish("chunker", "v2")  # straight into SQL: nobody told this process
    assert client.tag(f"chunker:{number}", [TOKENS]).tags == [["name-v2", "act-v2"]]
    publish("brand-new", "v1")
    assert client.tag("brand-new", [TOKENS]).version == 1


def test_a_newly_published_version_is_served_unasked(client: Client, publish: Publish) -> None:
    publish("followed", "v1")
    assert client.tag("followed", [TOKENS]).version == 1
    publish("followed", "v2")
    wait_until(lambda: client.tag("followed", [TOKENS]).version == 2, "the new version to be served")


def test_a_deleted_version_is_no_longer_served_by_the_process_that_deleted_it(
    client: Client, http: httpx.Client, publish: Publish
) -> None:
    publish("deleted", "v1")
    publish("deleted", "v2")
    assert client.tag("deleted:1", [TOKENS]).version == 1
    client.delete_version("deleted", 1)
    body = {"model": "deleted:1", "sentences": [TOKENS]}
    assert_problem(http.post("/tag", json=body), 404, "version_not_found")


def test_tagging_asks_neither_sql_nor_redis(
    server: ThreadServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.tag("chunker:1", [TOKENS])
    runtime = server.app.state.runtime

    def refuse(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(Database, "read", refuse)
    monkeypatch.setattr(Database, "write", refuse)
    monkeypatch.setattr(type(runtime.async_redis), "execute_command", refuse)
    for _ in range(5):
        assert client.tag("chunker:1", [TOKENS]).version == 1
    monkeypatch.undo()


def test_too_many_waiting_requests_are_sent_away(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_WAITING", 0)
    response = http.post("/tag", json={"model": "chunker:1", "sentences": [TOKENS] * 400})
    assert_problem(response, 503, "overloaded")
    assert response.headers["retry-after"] == "1"


def test_unicode_passes_through(http: httpx.Client) -> None:
    answer = tag(http, sentences=[[["Žluťoučký", "NNP"], ["漢字🙂", "é"], ["a\u0000b", "X"]]])
    assert len(answer["tags"][0]) == 3


def test_a_damaged_cache_file_is_replaced(
    server: ThreadServer, client: Client, publish: Publish, database: Database
) -> None:
    number = publish("damaged", "v9")
    with database.read() as conn:
        sha256 = models.version(conn, "damaged", number).sha256
    path: Path = server.settings.cache_dir / f"{sha256}.model"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"rubbish")
    assert client.tag("damaged", [TOKENS]).tags == [["name-v9", "act-v9"]]
