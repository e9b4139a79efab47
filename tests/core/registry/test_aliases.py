import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tagsmith.core.base.errors import Conflict, NotFound, Stale
from tagsmith.core.registry import aliases, models
from tagsmith.core.registry.aliases import MoveContext
from tagsmith.core.store import tables
from tagsmith.core.store.engine import Database
from tests.core.store.samples import LATER, add_version


def prepare(db: Database, name: str, versions: int) -> None:
    for _ in range(versions):
        add_version(db, name)


def move(db: Database, name: str, *versions: int) -> None:
    for version in versions:
        with db.write() as conn:
            aliases.move(conn, name, "champion", version)


def rollback(db: Database, name: str) -> int:
    with db.write() as conn:
        return aliases.rollback(conn, name, "champion").version


def test_a_move_is_recorded_with_who_when_and_why(db: Database) -> None:
    prepare(db, "recorded", 2)
    with db.write() as conn:
        first = aliases.move(conn, "recorded", "champion", 1, MoveContext("ann", "first try", "req-7"))
        second = aliases.move(conn, "recorded", "champion", 2, MoveContext("bob", "better F1", "req-8"))
        third = aliases.rollback(conn, "recorded", "champion", MoveContext("cy", "worse on Mondays", "req-9"))
    with db.read() as conn:
        assert aliases.get(conn, "recorded", "champion") == third
        assert aliases.list_all(conn, "recorded") == [third]
        page = aliases.history(conn, "recorded", "champion", 10)
    assert [(row.seq, row.version) for row in (first, second, third)] == [(1, 1), (2, 2), (3, 1)]
    assert [
        (row.seq, row.action, row.from_version, row.to_version, row.actor, row.reason, row.request_id)
        for row in page.data
    ] == [
        (3, "rollback", 2, 1, "cy", "worse on Mondays", "req-9"),
        (2, "move", 1, 2, "bob", "better F1", "req-8"),
        (1, "move", None, 1, "ann", "first try", "req-7"),
    ]
    assert page.data[0].at == third.updated_at


def test_two_rollbacks_go_two_back_and_then_there_is_nothing(db: Database) -> None:
    prepare(db, "stack", 3)
    move(db, "stack", 1, 2, 3)
    assert [rollback(db, "stack"), rollback(db, "stack")] == [2, 1]
    with pytest.raises(Conflict) as caught:
        rollback(db, "stack")
    assert caught.value.code == "nothing_to_roll_back"


def test_a_move_after_a_rollback_is_undone_first(db: Database) -> None:
    prepare(db, "resumed", 4)
    move(db, "resumed", 1, 2, 3)
    assert rollback(db, "resumed") == 2
    move(db, "resumed", 4)
    assert [rollback(db, "resumed"), rollback(db, "resumed")] == [2, 1]
    with pytest.raises(Conflict):
        rollback(db, "resumed")


def test_moving_back_by_hand_is_a_move_like_any_other(db: Database) -> None:
    prepare(db, "by-hand", 2)
    move(db, "by-hand", 1, 2, 1)
    assert [rollback(db, "by-hand"), rollback(db, "by-hand")] == [2, 1]


def test_moving_to_where_it_is_changes_and_records_nothing(db: Database) -> None:
    prepare(db, "still", 2)
    move(db, "still", 1, 2, 2, 2)
    with db.read() as conn:
        assert aliases.get(conn, "still", "champion").seq == 2
    assert rollback(db, "still") == 1


def test_a_rollback_passes_over_deleted_versions(db: Database) -> None:
    prepare(db, "holes", 4)
    move(db, "holes", 1, 2, 3, 4)
    with db.write() as conn:
        models.delete_version(conn, "holes", 3)
        models.delete_version(conn, "holes", 2)
    assert rollback(db, "holes") == 1
    with pytest.raises(Conflict):
        rollback(db, "holes")


def test_a_rollback_never_ends_where_it_began(db: Database) -> None:
    prepare(db, "there-and-back", 2)
    move(db, "there-and-back", 1, 2, 1)
    with db.write() as conn:
        models.delete_version(conn, "there-and-back", 2)
    with pytest.raises(Conflict):
        rollback(db, "there-and-back")


def test_a_stale_if_match_changes_nothing(db: Database) -> None:
    prepare(db, "matched", 3)
    with db.write() as conn:
        aliases.move(conn, "matched", "champion", 1, if_match=0)
        aliases.move(conn, "matched", "champion", 2, if_match=1)
    for act in (
        lambda conn: aliases.move(conn, "matched", "champion", 3, if_match=1),
        lambda conn: aliases.move(conn, "matched", "champion", 2, if_match=1),
        lambda conn: aliases.rollback(conn, "matched", "champion", if_match=1),
        lambda conn: aliases.move(conn, "matched", "fresh", 1, if_match=1),
    ):
        with pytest.raises(Stale) as caught, db.write() as conn:
            act(conn)
        assert caught.value.code == "alias_moved"
    with db.write() as conn:
        assert aliases.get(conn, "matched", "champion").version == 2
        assert aliases.rollback(conn, "matched", "champion", if_match=2).version == 1


def test_of_movers_at_once_with_the_same_if_match_one_wins(db: Database) -> None:
    prepare(db, "raced", 5)
    move(db, "raced", 5)
    start = threading.Barrier(4)

    def attempt(version: int) -> bool:
        start.wait()
        try:
            with db.write() as conn:
                aliases.move(conn, "raced", "champion", version, if_match=1)
        except Stale:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(attempt, range(1, 5))) == 1


def test_first_movers_at_once_are_all_recorded(db: Database) -> None:
    prepare(db, "firsts", 4)
    start = threading.Barrier(4)

    def attempt(version: int) -> None:
        start.wait()
        with db.write() as conn:
            aliases.move(conn, "firsts", "champion", version)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(1, 5)))
    with db.read() as conn:
        page = aliases.history(conn, "firsts", "champion", 10)
    assert [row.seq for row in page.data] == [4, 3, 2, 1]
    assert {row.to_version for row in page.data} == {1, 2, 3, 4}
    assert [row.from_version for row in page.data] == [*(row.to_version for row in page.data[1:]), None]


def test_what_is_not_there_is_not_found(db: Database) -> None:
    prepare(db, "present", 1)
    cases = [
        (lambda conn: aliases.move(conn, "absent", "champion", 1), "model_not_found"),
        (lambda conn: aliases.move(conn, "present", "champion", 2), "version_not_found"),
        (lambda conn: aliases.rollback(conn, "present", "champion"), "alias_not_found"),
        (lambda conn: aliases.rollback(conn, "absent", "champion"), "model_not_found"),
        (lambda conn: aliases.get(conn, "present", "champion"), "alias_not_found"),
        (lambda conn: aliases.get(conn, "absent", "champion"), "model_not_found"),
        (lambda conn: aliases.history(conn, "present", "champion", 10), "alias_not_found"),
        (lambda conn: aliases.list_all(conn, "absent"), "model_not_found"),
    ]
    for act, code in cases:
        with pytest.raises(NotFound) as caught, db.write() as conn:
            act(conn)
        assert caught.value.code == code


def test_history_is_listed_by_keyset(db: Database) -> None:
    prepare(db, "long", 2)
    move(db, "long", 1, 2, 1, 2, 1)
    with db.read() as conn:
        first = aliases.history(conn, "long", "champion", 3)
        second = aliases.history(conn, "long", "champion", 3, first.next_cursor)
    assert [row.seq for row in first.data + second.data] == [5, 4, 3, 2, 1]
    assert second.next_cursor is None


def back(db: Database, name: str, steps: int = 1, to: int | datetime | None = None) -> int:
    with db.write() as conn:
        return aliases.rollback(conn, name, "champion", target=aliases.RollbackTarget(steps, to)).version


def moves(db: Database, name: str) -> list[aliases.MoveRow]:
    with db.read() as conn:
        return aliases.history(conn, name, "champion", 100).data[::-1]


def test_several_steps_at_once_lead_where_as_many_rollbacks_do(db: Database) -> None:
    for name in ("at-once", "one-by-one"):
        prepare(db, name, 4)
        move(db, name, 1, 3, 1, 2, 4)
    assert back(db, "at-once", 3) == 3
    assert [rollback(db, "one-by-one") for _ in range(3)] == [2, 1, 3]
    assert (rollback(db, "at-once"), rollback(db, "one-by-one")) == (1, 1)
    last = moves(db, "at-once")
    assert [(each.from_version, each.to_version, each.to_seq) for each in last[5:]] == [(4, 3, 2), (3, 1, 1)]
    with pytest.raises(Conflict):
        rollback(db, "at-once")


def test_more_steps_than_there_are_change_nothing(db: Database) -> None:
    prepare(db, "too-far", 3)
    move(db, "too-far", 1, 2, 3)
    with pytest.raises(Conflict, match="can go back 2 steps, not 3") as caught:
        back(db, "too-far", 3)
    assert caught.value.code == "nothing_to_roll_back"
    assert len(moves(db, "too-far")) == 3


def test_a_rollback_to_a_point_finds_it_even_when_it_was_undone(db: Database) -> None:
    prepare(db, "point", 4)
    move(db, "point", 1, 2, 3)
    assert back(db, "point", 2) == 1
    times = [each.at for each in moves(db, "point")]
    assert back(db, "point", to=3) == 3  # undone by the step before
    assert rollback(db, "point") == 1
    assert back(db, "point", to=times[1]) == 2
    assert back(db, "point", to=times[2] - timedelta(microseconds=1)) == 2  # is there already
    assert [each.to_seq for each in moves(db, "point")] == [None, None, None, 1, 3, 4, 2]
    with pytest.raises(NotFound) as caught:
        back(db, "point", to=99)
    assert caught.value.code == "move_not_found"
    with pytest.raises(NotFound) as caught:
        back(db, "point", to=times[0] - timedelta(seconds=1))
    assert caught.value.code == "alias_not_found"


def test_a_point_whose_version_was_deleted_is_a_conflict(db: Database) -> None:
    prepare(db, "gone", 2)
    move(db, "gone", 1, 2)
    with db.write() as conn:
        models.delete_version(conn, "gone", 1)
    with pytest.raises(Conflict) as caught:
        back(db, "gone", to=1)
    assert caught.value.code == "version_deleted"


def test_an_alias_can_be_read_as_it_stood_at_any_time(db: Database) -> None:
    prepare(db, "travel", 3)
    move(db, "travel", 1, 2, 3)
    rollback(db, "travel")
    history = moves(db, "travel")
    with db.read() as conn:
        found = [aliases.at(conn, "travel", "champion", each.at) for each in history]
        between = aliases.at(conn, "travel", "champion", history[2].at - timedelta(microseconds=1))
        assert aliases.at(conn, "travel", "champion", history[3].at + LATER) == found[3]
    assert [(row.seq, row.version, row.updated_at) for row in found] == [
        (each.seq, each.to_version, each.at) for each in history
    ]
    assert between == found[1]


def test_rollbacks_from_before_points_were_recorded_still_count(db: Database) -> None:
    prepare(db, "older", 3)
    move(db, "older", 1, 2, 3)
    rollback(db, "older")
    with db.write() as conn:
        conn.execute(
            tables.alias_move.update().where(tables.alias_move.c.model == "older").values(to_seq=None)
        )
    assert rollback(db, "older") == 1
