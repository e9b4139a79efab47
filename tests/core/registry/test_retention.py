from functools import partial

import pytest
from sqlalchemy.engine import Connection

from tagsmith.core.base.errors import NotFound
from tagsmith.core.jobs import jobs, leases
from tagsmith.core.registry import aliases, models, policies, retention
from tagsmith.core.registry.policies import PolicyRules, RetentionRules
from tagsmith.core.store.engine import Database
from tests.core.store.races import Attempt, race
from tests.core.store.samples import add_version


def prepare(db: Database, name: str, versions: int, keep_last: int = 1, keep_rollbacks: int = 0) -> None:
    for _ in range(versions):
        add_version(db, name)
    with db.write() as conn:
        policies.put(conn, name, PolicyRules(retention=RetentionRules(keep_last, keep_rollbacks)))


def remaining(db: Database, name: str) -> list[int]:
    with db.read() as conn:
        return [row.version for row in models.versions(conn, name, 100).data]


def test_a_few_at_a_time_go_the_oldest_first(db: Database) -> None:
    prepare(db, "few", 6, keep_last=2)
    for gone in ([1, 2, 3], [4], []):
        with db.write() as conn:
            assert retention.apply(conn, "few", at_most=3) == gone
    assert remaining(db, "few") == [6, 5]


def test_without_rules_everything_stays(db: Database) -> None:
    prepare(db, "unruly", 3)
    with db.write() as conn:
        policies.delete(conn, "unruly")
        assert retention.apply(conn, "unruly", at_most=9) == []
        assert "unruly" not in policies.retaining(conn)
        with pytest.raises(NotFound):
            retention.apply(conn, "nobody", at_most=9)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 9])
def test_so_many_rollbacks_work_afterwards_as_they_did_before(db: Database, steps: int) -> None:
    name = f"back-{steps}"
    prepare(db, name, 9, keep_rollbacks=steps)

    def way(conn: Connection) -> list[int]:
        alias = aliases.get(conn, name, "champion")
        return [point.version for point in aliases.rollback_targets(conn, alias)]

    with db.write() as conn:
        for number in (1, 5, 2, 5, 3):
            aliases.move(conn, name, "champion", number)
        aliases.rollback(conn, name, "champion")
        aliases.move(conn, name, "champion", 4)
        before = way(conn)
        assert before == [5, 2, 5, 1]
        retention.apply(conn, name, at_most=99)
        assert way(conn)[:steps] == before[:steps]
    assert set(remaining(db, name)) == {9, 4, *before[:steps]}


def test_a_move_and_a_sweep_at_once_never_leave_an_alias_on_nothing(db: Database) -> None:
    for number in range(10):
        name = f"moved-{number}"
        prepare(db, name, 3)
        moved, _ = race(
            db,
            Attempt(partial(aliases.move, model=name, alias="champion", version=1), NotFound),
            Attempt(partial(retention.apply, model=name, at_most=9), NotFound),
        )
        assert remaining(db, name) == ([3, 1] if moved else [3])


def test_a_job_and_a_sweep_at_once_never_leave_a_job_without_its_version(db: Database) -> None:
    for number in range(10):
        name = f"used-{number}"
        prepare(db, name, 3)
        uses = jobs.Uses(versions=[(name, 2)])
        created, _ = race(
            db,
            Attempt(partial(jobs.create, kind="tag", spec={}, uses=uses), NotFound),
            Attempt(partial(retention.apply, model=name, at_most=9), NotFound),
        )
        assert remaining(db, name) == ([3, 2] if created else [3])


def test_a_job_that_has_ended_keeps_nothing(db: Database) -> None:
    prepare(db, "ended", 2)
    with db.write() as conn:
        job = jobs.create(conn, kind="tag", spec={}, uses=jobs.Uses(versions=[("ended", 1)]))
        leases.claim(conn, job.id, "w", 30)
        assert retention.apply(conn, "ended", at_most=9) == []
        leases.succeed(conn, job.id, "w", {})
        assert retention.apply(conn, "ended", at_most=9) == [1]
