"""Changes of what is served are announced, each after its commit and only then."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing

import pytest
from redis import Redis

from tagsmith.core.registry import aliases, generations, models, registry
from tagsmith.core.registry.aliases import MoveContext, RollbackTarget
from tagsmith.core.registry.registry import Registry
from tagsmith.core.service import messages
from tagsmith.core.store.engine import Database, after_commit
from tests.core.store.samples import add_version, new_version
from tests.services import Listener

ANN = MoveContext("ann")
NEW = new_version()


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with messages.connect(redis_url) as made:
        yield made


def listening(redis: Redis) -> AbstractContextManager[Listener]:
    return closing(Listener(redis, messages.REGISTRY_CHANNEL))


def heard(listener: Listener) -> int:
    """How many announcements came."""
    return len(listener.heard())


def test_every_change_is_announced_once_and_after_its_commit(db: Database, redis: Redis) -> None:
    changed = Registry(redis)
    changes = {
        "publish": lambda conn: changed.publish(conn, "news", NEW, [b"x"]),
        "again": lambda conn: changed.publish(conn, "news", NEW, [b"x"]),
        "move": lambda conn: changed.move_alias(conn, "news", "champion", 1, ANN),
        "on": lambda conn: changed.move_alias(conn, "news", "champion", 2, ANN),
        "roll back": lambda conn: changed.roll_back(conn, "news", "champion", ANN, None, RollbackTarget()),
        "delete": lambda conn: changed.delete_version(conn, "news", 2),
    }
    for name, change in changes.items():
        with listening(redis) as listener:
            with db.read() as conn:
                before = generations.generation(conn)
            with db.write() as conn:
                change(conn)
                assert heard(listener) == 0, name
            with db.read() as conn:
                assert generations.generation(conn) > before, name
            assert heard(listener) == 1, name


def test_two_changes_of_one_transaction_are_announced_once(db: Database, redis: Redis) -> None:
    changed = Registry(redis)
    with listening(redis) as listener:
        with db.write() as conn:
            made = changed.publish(conn, "trained", NEW, [b"x"])
            changed.move_alias(conn, "trained", "champion", made.version, ANN)
        assert heard(listener) == 1


def test_a_change_that_is_undone_is_not_announced_and_neither_is_the_next(db: Database, redis: Redis) -> None:
    changed = Registry(redis)

    def fail() -> None:
        with db.write() as conn:
            changed.publish(conn, "undone", NEW, [b"x"])
            raise RuntimeError

    with listening(redis) as listener:
        with pytest.raises(RuntimeError):
            fail()
        with db.write():
            pass
        assert heard(listener) == 0


def test_without_redis_a_change_is_made_all_the_same(db: Database) -> None:
    with db.write() as conn:
        Registry(None).publish(conn, "quiet", NEW, [b"x"])
    with db.read() as conn:
        assert models.version(conn, "quiet", 1).version == 1


def test_actions_run_when_others_can_write_again(db: Database) -> None:
    done = []

    def act() -> None:
        # On SQLite a process has one writer: this would wait for a transaction that is still open.
        with db.write() as conn:
            done.append(generations.generation(conn))

    with db.write() as conn:
        after_commit(conn, act)
    assert len(done) == 1


def test_an_alias_shows_where_one_rollback_leads(db: Database) -> None:
    changed = Registry(None)
    for _ in range(3):
        add_version(db, "shown")

    def rollback_to() -> int | None:
        with db.read() as conn:
            (listed,) = registry.alias_states(conn, "shown")
            assert listed == registry.alias_state(conn, "shown", "champion")
            return listed.rollback_to

    shown = []
    for version in (1, 2, 3):
        with db.write() as conn:
            moved = changed.move_alias(conn, "shown", "champion", version, ANN)
        assert moved.rollback_to == rollback_to()
        shown.append(moved.rollback_to)
    assert shown == [None, 1, 2]
    with db.write() as conn:
        changed.delete_version(conn, "shown", 2)
    assert rollback_to() == 1
    with db.read() as conn:
        second = next(move for move in aliases.history(conn, "shown", "champion", 10).data if move.seq == 2)
        assert registry.alias_state(conn, "shown", "champion", second.at).rollback_to == 1
    with db.write() as conn:
        back = changed.roll_back(conn, "shown", "champion", ANN, None, RollbackTarget())
    assert (back.version, back.rollback_to, rollback_to()) == (1, None, None)
