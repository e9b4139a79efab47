"""The repair of generated requests, and the report of a run."""

from collections import Counter

from tagsmith.app.http.middleware import idempotency
from tests.contract.hooks import Tally
from tests.contract.request_repair import ALWAYS, CONDITION, RequestRepair
from tests.contract.run import Outcome

IDS = {"crp": ["crp_there"], "lex": ["lex_there"]}


def make() -> RequestRepair:
    return RequestRepair(IDS, ["model"], ["model:1", "model:2"])


def test_most_bodies_name_existing_things_and_equal_bodies_give_equal_results() -> None:
    bodies = [{"kind": "train", "corpus": f"crp_{n}", "dev": {"corpus": "a name"}} for n in range(100)]
    repaired = [make().body(each) for each in bodies]
    assert repaired == [make().body(each) for each in bodies]
    changed = [each for each, before in zip(repaired, bodies, strict=True) if each != before]
    assert all(each["corpus"] == each["dev"]["corpus"] == "crp_there" for each in changed)
    assert 60 < len(changed) < 90


def test_features_come_from_one_source_and_models_are_all_different() -> None:
    features = [{"features": {"templates": "", "preset": "x", "cutoff": n}} for n in range(40)]
    left = Counter(tuple(sorted(make().body(each)["features"])) for each in features)
    assert set(left) == {("cutoff", "preset"), ("cutoff", "templates"), ("cutoff", "preset", "templates")}
    evaluated = {"kind": "evaluate", "models": ["a", "a"], "seed": 1}
    many = [make().body({**evaluated, "seed": n})["models"] for n in range(20)]
    assert ["model:1", "model:2"] in many
    assert make().body(["no object"]) == ["no object"]


def test_most_conditions_hold_and_most_requests_are_new() -> None:
    repair, one = make(), {CONDITION: '"7"', idempotency.HEADER: "key"}
    sent = [dict(one) for _ in range(400)]
    for each in sent:
        repair.headers(each)
    held = Counter(each[CONDITION] for each in sent)
    assert 0 < held['"7"'] < held[ALWAYS]
    keys = Counter(each[idempotency.HEADER] for each in sent)
    assert 0 < keys.pop("key") < len(sent) / 4
    assert set(keys.values()) == {1}
    odd: dict[str, object] = {idempotency.HEADER: "not a key"}
    repair.headers(odd)
    assert odd == {idempotency.HEADER: "not a key"}


def test_options_of_other_formats_are_kept_out() -> None:
    queries = [{"format": "conll", "repair": "true", "coding": "4"} for _ in range(100)]
    repair = make()
    for each in queries:
        repair.query(each)
    assert 10 < sum("coding" in each for each in queries) < 40
    assert all("repair" in each for each in queries)
    strange = {"format": ["conll"], "columns": "form"}
    repair.query(strange)
    assert "columns" in strange


def test_an_outcome_lists_operations_never_accepted_or_requested() -> None:
    tallies = {
        "GET /a": Tally(Counter({"200": 2, "404": 1})),
        "GET /b": Tally(Counter({"404": 3})),
        "GET /c": Tally(),
    }
    outcome = Outcome(0, tallies)
    assert outcome.never_accepted == ["GET /b", "GET /c"]
    assert outcome.never_requested == ["GET /c"]
    assert (outcome.requests, outcome.accepted("GET /a")) == (6, 2)
    assert len(outcome.report().splitlines()) == 4
