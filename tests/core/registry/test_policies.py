from functools import partial

import pytest

from tagsmith.core.base.errors import Conflict, NotFound, Stale
from tagsmith.core.jobs import jobs
from tagsmith.core.registry import aliases, evaluations, models, policies
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
            Attempt(partial(corpora.delete, corpus_id=corpus), Conflict),
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


def test_only_evaluations_that_ended_well_count_and_the_newest_of_them(db: Database) -> None:
    version, corpus, other = add_version(db, "scored"), add_corpus(db).id, add_corpus(db).id

    def evaluated(on: str, f1: float, *, ended: bool = True) -> None:
        with db.write() as conn:
            job = jobs.create(
                conn, kind="evaluate", spec={"corpus": on}, uses=jobs.Uses([on], [("scored", 1)])
            )
            jobs.claim(conn, job.id, "w", 30)
            result = {"models": [{"model": "scored", "version": 1, "metrics": {"f1": f1}}]}
            if ended:
                jobs.succeed(conn, job.id, "w", result)
            else:
                jobs.fail(conn, job.id, "w", {"code": "x", "message": "y"})

    def stored() -> float | None:
        with db.read() as conn:
            found = evaluations.metrics(conn, version, corpus)
        return None if found is None else found["f1"]

    evaluated(other, 1.0)
    evaluated(corpus, 2.0, ended=False)
    assert stored() is None
    evaluated(corpus, 70.0)
    evaluated(other, 3.0)
    assert stored() == 70.0
    evaluated(corpus, 60.0)
    assert stored() == 60.0
