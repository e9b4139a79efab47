from functools import partial

import pytest

from tagsmith.core.base.errors import Conflict, NotFound, Stale
from tagsmith.core.registry import aliases, evaluations, models, policies
from tagsmith.core.registry.evaluations import NewEvaluation
from tagsmith.core.registry.policies import PolicyRules, PromotionRules
from tagsmith.core.registry.promotion import PromotionRefused
from tagsmith.core.store import corpora
from tagsmith.core.store.engine import Database
from tests.core.store.races import Attempt, race
from tests.core.store.samples import add_corpus, add_version

MINIMUM = PolicyRules(PromotionRules(["champion"], "f1", None, minimum=90.0))


def guard(db: Database, name: str, rules: PolicyRules = MINIMUM) -> None:
    with db.write() as conn:
        policies.put(conn, name, rules)


def test_a_policy_comes_back_as_it_was_put(db: Database) -> None:
    add_version(db, "kept")
    corpus = add_corpus(db).id
    rules = PolicyRules(PromotionRules(["champion", "next"], "recall", corpus, 90.5, 0.25, 3.0))
    with db.write() as conn:
        made = policies.put(conn, "kept", rules, if_match=0)
    with db.read() as conn:
        assert policies.get(conn, "kept") == made
    assert (made.promotion, made.seq) == (rules.promotion, 1)


def test_a_number_never_comes_back_also_when_the_policy_was_removed(db: Database) -> None:
    add_version(db, "anew")
    guard(db, "anew")
    with db.write() as conn:
        policies.delete(conn, "anew", if_match=1)
        assert policies.find(conn, "anew") is None
        with pytest.raises(NotFound):
            policies.delete(conn, "anew")
        with pytest.raises(Stale):
            policies.put(conn, "anew", MINIMUM, if_match=1)
        assert policies.put(conn, "anew", MINIMUM, if_match=0).seq == 3


def test_of_two_that_change_the_same_policy_one_is_stale(db: Database) -> None:
    add_version(db, "changed")
    guard(db, "changed")
    change = Attempt(partial(policies.put, model="changed", rules=MINIMUM, if_match=1), Stale)
    assert sorted(race(db, change, change, change)) == [False, False, True]


def test_a_policy_and_the_deletion_of_its_corpus_at_once_never_both_go_through(db: Database) -> None:
    for number in range(5):
        name, corpus = f"raced-{number}", add_corpus(db).id
        add_version(db, name)
        rules = PolicyRules(PromotionRules(["champion"], "f1", corpus, minimum=1.0))
        put, deleted = race(
            db,
            Attempt(partial(policies.put, model=name, rules=rules), NotFound),
            Attempt(partial(corpora.delete, reference=corpus), Conflict),
        )
        assert put != deleted


def test_no_alias_is_moved_past_a_policy_that_is_put_at_the_same_time(db: Database) -> None:
    for number in range(5):
        name = f"met-{number}"
        add_version(db, name)
        (moved, _) = race(
            db,
            Attempt(partial(aliases.move, model=name, alias="champion", version=1), PromotionRefused),
            Attempt(partial(policies.put, model=name, rules=MINIMUM), Stale),
        )
        with db.read() as conn:
            if moved:
                before = aliases.get(conn, name, "champion").updated_at
                assert before <= policies.get(conn, name).updated_at
            else:
                assert models.get(conn, name).aliases == {}


def test_the_newest_scores_of_a_version_on_each_corpus_are_kept_and_outlive_job_and_corpus(
    db: Database,
) -> None:
    add_version(db, "scored")
    corpus, other = add_corpus(db).id, add_corpus(db)

    def evaluated(on: str | None, f1: float) -> None:
        metrics = {
            "f1": f1,
            "sentences": 2,
            "by_type": {"NP": {"precision": 1.0, "recall": 2.0, "f1": f1, "gold": 3}},
        }
        score = NewEvaluation(on, None if on else 0.1, "f1", metrics, "job_x")
        with db.write() as conn:
            evaluations.record(conn, "scored", 1, score)

    def stored() -> dict[str | None, float]:
        with db.read() as conn:
            return {each.corpus: each.score for each in models.version(conn, "scored", 1).evaluations}

    assert stored() == {}
    for on, f1 in ((None, 50.0), (other.id, 1.0), (corpus, 70.0), (other.id, 3.0), (corpus, 60.0)):
        evaluated(on, f1)
    assert list(stored().items()) == [(corpus, 60.0), (other.id, 3.0), (None, 50.0)]
    with db.write() as conn:
        corpora.delete(conn, other.id)
        (_, kept, _) = models.version(conn, "scored", 1).evaluations
        metrics = evaluations.metrics_on(conn, "scored", 1, corpus)
    assert (kept.corpus_name, kept.corpus_number, kept.metric) == (other.name, other.number, "f1")
    assert kept.types == {"NP": {"precision": 1.0, "recall": 2.0, "f1": 3.0, "support": 3}}
    assert kept.metrics == {"f1": 3.0, "sentences": 2}
    assert metrics is not None
    assert metrics["by_type"]["NP"]["gold"] == 3
    with db.write() as conn:
        models.delete_version(conn, "scored", 1)
        assert evaluations.of_versions(conn, "scored", [1]) == {1: ()}
