"""Regular expressions that take long have a limit per request, and are not searched on the event loop."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tagsmith.core.base.regex import Regex, regex
from tagsmith.core.base.steps import finished
from tagsmith.core.corpus.formats import conll
from tagsmith.core.jobs import kinds
from tagsmith.core.model import file
from tagsmith.core.registry import models
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem
from tests.training import train

#: Visits every pair of one of its 323 steps and a position of the text.
SLOW = {"kind": "regex", "of": 0, "pattern": "(a?){160}[a-zA-Z]$", "take": "match"}
QUICK = {"kind": "regex", "of": 0, "pattern": "[a-zA-Z]$", "take": "match"}
LONG = "a" * 900


def publish(database: Database, path: Path, expression: dict[str, Any]) -> None:
    """Publish a model that searches every word four times."""
    features = {
        "derived": {f"m{i}": expression for i in range(4)},
        "templates": ["0", *(f"m{i}" for i in range(4))],
    }
    corpus = conll.read_conll([samples.TEXT], max_line_bytes=1000)
    model = finished(train(kinds.parse_job(samples.spec("crp_x", features=features)), corpus, None)).model
    file.save(model, path)
    with database.write() as conn:
        models.publish(conn, path.name, samples.NEW, [path.read_bytes()])


@pytest.fixture(scope="module", autouse=True)
def published(database: Database, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("models")
    publish(database, folder / "slow", SLOW)
    publish(database, folder / "quick", QUICK)


@pytest.fixture
def searched_in(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that search long words, in order."""
    names: list[str] = []
    find_all = Regex.find_all

    def found(self: Regex, texts: Sequence[str]) -> list[str | None]:
        if any(text.startswith(LONG) for text in texts):
            names.append(threading.current_thread().name)
        return find_all(self, texts)

    monkeypatch.setattr(Regex, "find_all", found)
    return names


def test_slow_expressions_are_searched_in_threads_and_quick_ones_at_once(
    server: ThreadServer, http: httpx.Client, searched_in: list[str]
) -> None:
    server.ready()
    for model in ("slow", "quick"):
        body = {"model": model, "sentences": [[[LONG, "NNP"]]]}
        assert http.post("/tag", json=body).status_code == 200  # opens the model
        searched_in.clear()
        assert http.post("/tag", json=body).status_code == 200
        in_worker = ["AnyIO worker thread" in name for name in searched_in]
        assert in_worker == [model == "slow"] * 4, searched_in


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow about three searches of a long word."""
    monkeypatch.setattr(regex, "INTERACTIVE_STEPS", 1_000_000)


@pytest.mark.usefixtures("few_steps")
def test_a_request_that_needs_too_many_steps_is_refused(http: httpx.Client) -> None:
    body = {"model": "slow", "sentences": [[[LONG, "NNP"]]]}
    assert_problem(http.post("/tag", json=body), 413, "too_many_steps")
    assert http.post("/tag", json={"model": "slow", "sentences": [[["aaa", "NNP"]]]}).status_code == 200
    assert http.post("/tag", json={**body, "model": "quick"}).status_code == 200


@pytest.mark.usefixtures("few_steps")
def test_a_line_that_needs_too_many_steps_is_refused_and_the_others_are_tagged(http: httpx.Client) -> None:
    given = [{"model": "slow"}, *({"tokens": [[word, "NNP"]]} for word in ("aaa", LONG, "aa"))]
    headers = {"Content-Type": "application/x-ndjson"}
    response = http.post("/tag", content="".join(json.dumps(each) + "\n" for each in given), headers=headers)
    lines = [json.loads(line) for line in response.text.splitlines()][1:]
    assert ["tags" in line for line in lines] == [True, False, True]
    assert lines[1]["error"]["code"] == "too_many_steps"


@pytest.mark.usefixtures("few_steps")
def test_a_preview_that_needs_too_many_steps_is_refused(http: httpx.Client) -> None:
    features = {"derived": {"m": SLOW}, "templates": ["m"]}
    sentence = [f"{LONG[:890]}{i}" for i in range(10)]
    response = http.post("/features/preview", json={"features": features, "sentence": sentence})
    assert_problem(response, 413, "too_many_steps")
    assert http.post("/features/preview", json={"features": features, "sentence": ["ab"]}).status_code == 200
