"""Policies over HTTP: which moves of an alias they refuse, and what gets past them."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tagsmith.client import ApiError, Client
from tagsmith.core.registry import evaluations, models
from tagsmith.core.registry.evaluations import NewEvaluation
from tagsmith.core.registry.models import NewVersion
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem
from tests.app.test_job_kinds import succeed
from tests.services import wait_until


def metrics_of(f1: float, **by_type: float) -> dict[str, Any]:
    types = {
        name: {"precision": score, "recall": score, "f1": score, "gold": 5} for name, score in by_type.items()
    }
    scores = {"f1": f1, "accuracy": f1 + 1, "precision": f1, "recall": f1}
    return {**scores, "sentences": 5, "by_type": types}


@pytest.fixture(scope="module")
def corpus_id(server: ThreadServer) -> str:
    return str(httpx.post(f"{server.url}/corpora", content=samples.TEXT).json()["id"])


Publish = Callable[..., int]


@pytest.fixture(scope="module")
def publish(database: Database) -> Publish:
    def make(name: str, dev: dict[str, Any] | None = None, dev_f1: float | None = None) -> int:
        metrics = {} if dev_f1 is None else {"dev": metrics_of(dev_f1)}
        new = NewVersion(
            objective=1.0, active_features=1, train_seconds=0.1, metrics=metrics, trainer={"kind": "sgd-l1"},
            spec={"kind": "train", "dev": dev}, corpus="crp_x", seed=1, code_version="0.1.0", job_id=None,
        )  # fmt: skip
        with database.write() as conn:
            made = models.publish(conn, name, new, [b"bytes of a model"])
            if dev is not None and dev_f1 is not None:
                score = NewEvaluation(dev.get("corpus"), dev.get("fraction"), "f1", metrics["dev"], None)
                evaluations.record(conn, name, made.version, score)
        return made.version

    return make


Evaluate = Callable[..., None]


@pytest.fixture(scope="module")
def evaluate(client: Client, database: Database, corpus_id: str) -> Evaluate:
    """Store what an `evaluate` job would have measured."""

    def store(name: str, scores: dict[int, dict[str, Any]]) -> None:
        job = client.evaluate([f"{name}:{number}" for number in scores], corpus_id)
        rows = [
            {"model": name, "version": number, "sha256": "x", "metrics": metrics}
            for number, metrics in scores.items()
        ]
        succeed(database, job.id, {"corpus": corpus_id, "models": rows, "pairs": []})
        with database.write() as conn:
            for number, metrics in scores.items():
                new = NewEvaluation(corpus_id, None, "f1", metrics, job.id)
                evaluations.record(conn, name, number, new)

    return store


def test_a_policy_is_put_read_replaced_and_removed(
    http: httpx.Client, client: Client, publish: Publish, corpus_id: str
) -> None:
    publish("told")
    path = "/models/told/policy"
    assert_problem(http.get(path), 404, "policy_not_found")
    assert_problem(http.get("/models/nobody/policy"), 404, "model_not_found")
    rules = {"corpus": corpus_id, "minimum": 90, "max_drop": 0.5}
    made = http.put(path, json={"promotion": rules}, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["etag"]) == (200, '"1"'), made.text
    shown = made.json()
    assert shown.pop("updated_at").endswith("Z")
    assert shown == {
        "model": "told",
        "promotion": {
            "aliases": ["champion"], "metric": "f1", "corpus": corpus_id, "minimum": 90.0, "max_drop": 0.5,
            "max_type_drop": None,
        },
        "retention": None,
        "seq": 1,
    }  # fmt: skip
    read = http.get(path)
    assert (read.json()["promotion"], read.headers["etag"]) == (shown["promotion"], '"1"')
    assert http.get(path, headers={"If-None-Match": '"1"'}).status_code == 304
    assert client.set_policy("told", {"minimum": 80}, if_match=1).seq == 2
    promotion = client.policy("told").promotion
    assert promotion is not None
    assert promotion.model_dump() == {
        "aliases": ["champion"], "metric": "f1", "corpus": None, "minimum": 80.0, "max_drop": None,
        "max_type_drop": None,
    }  # fmt: skip
    for stale in ({"If-Match": '"1"'}, {"If-None-Match": "*"}):
        response = http.put(path, json={"promotion": {"minimum": 1}}, headers=stale)
        assert_problem(response, 412, "policy_changed")
        assert_problem(http.delete(path, headers=stale), 412, "policy_changed")
    client.delete_policy("told", if_match=2)
    assert_problem(http.get(path), 404, "policy_not_found")
    assert_problem(http.delete(path), 404, "policy_not_found")
    # Made anew, it does not answer to the tag of one that is gone.
    assert client.set_policy("told", {"minimum": 70}).seq == 4


def test_a_version_below_the_minimum_is_refused_with_both_numbers(
    http: httpx.Client, client: Client, publish: Publish, evaluate: Evaluate, corpus_id: str
) -> None:
    publish("least")
    publish("least")
    client.set_policy("least", {"corpus": corpus_id, "minimum": 90})
    evaluate("least", {1: metrics_of(89.5), 2: metrics_of(90.0)})
    response = http.put("/models/least/aliases/champion", json={"version": 1})
    problem = assert_problem(
        response,
        409,
        "policy_not_met",
        pointer="/version",
        reason=f"f1 of least:1 on {corpus_id} is 89.5, and the minimum is 90",
    )
    assert '"force": true' in problem["detail"]
    assert_problem(http.get("/models/least/aliases/champion"), 404, "alias_not_found")
    assert client.promote("least", 2).version == 2
    # What an alias does not guard may stand for anything.
    assert client.promote("least", 1, alias="canary").version == 1


def test_a_drop_against_the_champion_is_refused_and_one_of_just_so_much_is_not(
    http: httpx.Client, client: Client, publish: Publish, evaluate: Evaluate, corpus_id: str
) -> None:
    for _ in range(3):
        publish("drop")
    client.set_policy("drop", {"corpus": corpus_id, "max_drop": 0.5})
    # The first has nothing to fall below.
    client.promote("drop", 1)
    evaluate("drop", {1: metrics_of(93.6), 2: metrics_of(93.0), 3: metrics_of(93.1)})
    response = http.put("/models/drop/aliases/champion", json={"version": 2})
    reason = "is 93, which is 0.6 below the 93.6 of drop:1, and a drop of 0.5 is allowed"
    assert_problem(response, 409, "policy_not_met", pointer="/version", reason=reason)
    assert client.promote("drop", 3).version == 3


def test_a_drop_of_one_type_is_refused_though_the_whole_is_better(
    http: httpx.Client, client: Client, publish: Publish, evaluate: Evaluate, corpus_id: str
) -> None:
    publish("types")
    publish("types")
    client.promote("types", 1)
    client.set_policy("types", {"corpus": corpus_id, "max_type_drop": 2, "metric": "accuracy"})
    before = metrics_of(90, NP=95, VP=80, PP=90)
    evaluate("types", {1: before, 2: metrics_of(94, NP=92.5, VP=99, PP=88)})
    path = "/models/types/aliases/champion"
    problem = assert_problem(http.put(path, json={"version": 2}), 409, "policy_not_met")
    (place,) = problem["errors"]
    assert place["detail"].startswith(
        f"f1 of NP of types:2 on {corpus_id} is 92.5, which is 2.5 below the 95"
    )
    assert place["detail"].endswith("a drop of 2 is allowed")
    evaluate("types", {2: metrics_of(94, NP=92.5, VP=99, PP=80)})
    problem = assert_problem(http.put(path, json={"version": 2}), 409, "policy_not_met")
    (place,) = problem["errors"]
    assert place["detail"].startswith("f1 of PP of types:2")
    assert place["detail"].endswith("a drop of 2 is allowed (other types that fall too far: 1)")


def test_a_version_that_nobody_evaluated_is_refused_with_the_job_that_would(
    http: httpx.Client, client: Client, publish: Publish, corpus_id: str, evaluate: Evaluate
) -> None:
    publish("unseen")
    publish("unseen")
    client.promote("unseen", 1)
    client.set_policy("unseen", {"corpus": corpus_id, "minimum": 50, "max_drop": 1})
    path = "/models/unseen/aliases/champion"
    problem = assert_problem(http.put(path, json={"version": 2}), 409, "not_evaluated", pointer="/version")
    job = f'POST /jobs {{"kind":"evaluate","models":["unseen:2","unseen:1"],"corpus":"{corpus_id}"}}'
    assert job in problem["detail"]
    evaluate("unseen", {2: metrics_of(99)})
    problem = assert_problem(http.put(path, json={"version": 2}), 409, "not_evaluated")
    assert '"models":["unseen:1"]' in problem["detail"]
    evaluate("unseen", {1: metrics_of(99)})
    # The newest evaluation counts.
    evaluate("unseen", {2: metrics_of(40)})
    assert_problem(http.put(path, json={"version": 2}), 409, "policy_not_met")
    evaluate("unseen", {2: metrics_of(98.5)})
    assert client.promote("unseen", 2).seq == 2


def test_the_dev_set_of_training_counts_where_no_corpus_is_named_or_it_is_that_one(
    http: httpx.Client, client: Client, publish: Publish, corpus_id: str
) -> None:
    publish("dev", {"fraction": 0.1}, 91.0)
    publish("dev", {"corpus": corpus_id}, 92.0)
    publish("dev")
    client.set_policy("dev", {"minimum": 91})
    path = "/models/dev/aliases/champion"
    problem = assert_problem(http.put(path, json={"version": 3}), 409, "not_evaluated")
    assert "dev set" in problem["detail"]
    assert client.promote("dev", 1).version == 1
    client.set_policy("dev", {"minimum": 91, "corpus": corpus_id})
    assert client.promote("dev", 2).version == 2
    assert_problem(http.put(path, json={"version": 1}), 409, "not_evaluated")


def test_a_move_can_be_forced_with_a_reason_and_that_is_recorded(
    http: httpx.Client, client: Client, publish: Publish, evaluate: Evaluate, corpus_id: str
) -> None:
    publish("forced")
    publish("forced")
    client.set_policy("forced", {"corpus": corpus_id, "minimum": 90})
    evaluate("forced", {1: metrics_of(80), 2: metrics_of(95)})
    path = "/models/forced/aliases/champion"
    for reason in (None, " "):
        response = http.put(path, json={"version": 1, "force": True, "reason": reason})
        assert_problem(response, 422, "invalid_request", pointer="/reason")
    assert client.promote("forced", 1, reason="demo today", force=True).version == 1
    # Force where none is needed is no force.
    assert client.promote("forced", 2, reason="to be sure", force=True).version == 2
    newer, older = client.history("forced")
    assert newer.forced is None
    assert older.forced == f"f1 of forced:1 on {corpus_id} is 80, and the minimum is 90"
    deeds = [deed for deed in http.get("/audit").json()["data"] if deed["path"] == path]
    assert [deed["note"] for deed in deeds] == [None, f"forced (demo today) although {older.forced}"]
    assert {deed["status"] for deed in deeds} == {200}


def test_a_rollback_asks_no_policy(
    http: httpx.Client, client: Client, publish: Publish, evaluate: Evaluate, corpus_id: str
) -> None:
    publish("return")
    publish("return")
    client.promote("return", 1)
    client.promote("return", 2)
    client.set_policy("return", {"corpus": corpus_id, "minimum": 99})
    evaluate("return", {1: metrics_of(10)})
    assert_problem(http.put("/models/return/aliases/champion", json={"version": 1}), 409, "policy_not_met")
    assert client.rollback("return").version == 1
    assert client.rollback("return", to=2).version == 2
    # Nor does staying where it is.
    assert client.promote("return", 2).version == 2


def test_a_corpus_that_a_policy_names_stays(http: httpx.Client, client: Client, publish: Publish) -> None:
    publish("named")
    corpus = client.upload(samples.TEXT).id
    client.set_policy("named", {"corpus": corpus, "minimum": 1})
    problem = assert_problem(http.delete(f"/corpora/{corpus}"), 409, "corpus_in_use")
    assert "policy of model" in problem["detail"]
    client.delete_policy("named")
    client.delete_corpus(corpus)
    response = http.put("/models/named/policy", json={"promotion": {"corpus": corpus, "minimum": 1}})
    assert_problem(response, 422, "corpus_not_found", pointer="/promotion/corpus")


def test_a_job_that_could_never_promote_is_refused_when_it_is_posted(
    http: httpx.Client, client: Client, publish: Publish, corpus_id: str
) -> None:
    publish("posted")
    client.set_policy("posted", {"corpus": corpus_id, "max_drop": 1})
    spec = samples.spec(corpus_id, model="posted", promote="champion")
    # There is no champion yet, so that no drop is possible.
    client.cancel(client.train(spec).id)
    client.promote("posted", 1)
    for dev in (None, {"fraction": 0.5}):
        problem = assert_problem(
            http.post("/jobs", json={**spec, "dev": dev}), 422, "promotion_unscored", pointer="/promote"
        )
        assert corpus_id in problem["errors"][0]["detail"]
    search = {"kind": "grid", "fields": {"trainer.l1": [0.1]}}
    tune = {"kind": "tune", "corpus": corpus_id, "search": search, "folds": 2}
    response = http.post("/jobs", json={**tune, "train": {"model": "posted", "promote": "champion"}})
    assert_problem(response, 422, "promotion_unscored", pointer="/train/promote")
    for changes in ({"dev": {"corpus": corpus_id}}, {"promote": "canary"}, {"promote": None}):
        client.cancel(client.train({**spec, **changes}).id)
    client.set_policy("posted", {"minimum": 1})
    client.cancel(client.train({**spec, "dev": {"fraction": 0.5}}).id)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"promotion": None, "retention": None}, ""),
        ({"retention": {"keep_last": 0}}, "/retention/keep_last"),
        ({"retention": {"keep_last": 2.5}}, "/retention/keep_last"),
        ({"retention": {"keep_rollbacks": -1}}, "/retention/keep_rollbacks"),
        ({"retention": {"keep_all": True}}, "/retention/keep_all"),
        ({"promotion": {}}, "/promotion"),
        ({"promotion": {"max_drop": 1}}, "/promotion"),
        ({"promotion": {"max_type_drop": 1}}, "/promotion"),
        ({"promotion": {"minimum": 101}}, "/promotion/minimum"),
        ({"promotion": {"minimum": -1}}, "/promotion/minimum"),
        ({"promotion": {"minimum": "90"}}, "/promotion/minimum"),
        ({"promotion": {"minimum": True}}, "/promotion/minimum"),
        ({"promotion": {"minimum": 1, "aliases": []}}, "/promotion/aliases"),
        ({"promotion": {"minimum": 1, "aliases": ["A B"]}}, "/promotion/aliases/0"),
        ({"promotion": {"minimum": 1, "metric": "bleu"}}, "/promotion/metric"),
        ({"promotion": {"minimum": 1, "corpus": "ne\tws"}}, "/promotion/corpus"),
        ({"promotion": {"minimum": 1, "colour": "red"}}, "/promotion/colour"),
        ([], ""),
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_a_wrong_policy_is_pointed_at(http: httpx.Client, body: object, pointer: str) -> None:
    response = http.put("/models/nobody/policy", json=body)
    assert_problem(response, 422, "invalid_request", pointer=pointer)


def test_policies_are_changed_by_those_who_may_promote(
    server: ThreadServer, database: Database, publish: Publish
) -> None:
    publish("scoped")
    callers = Callers(database, server.url)
    reader, promoter = callers.client("read"), callers.client("promote", "read")
    path, body = "/models/scoped/policy", {"promotion": {"minimum": 1}}
    wait_until(lambda: httpx.get(f"{server.url}{path}").status_code == 401, "keys to be in force")
    assert_problem(reader.put(path, json=body), 403, "scope_missing")
    assert_problem(reader.delete(path), 403, "scope_missing")
    assert promoter.put(path, json=body).status_code == 200
    assert reader.get(path).status_code == 200
    with Client(server.url, retries=0) as nobody, pytest.raises(ApiError):
        nobody.policy("scoped")
    callers.close()
