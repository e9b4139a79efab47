"""SQLite on a disk that is full: an outage with a sentence, and nothing is lost."""

import os
from pathlib import Path

import pytest

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.store import corpora, migrate
from tagsmith.core.store.engine import Database
from tests.core.store.samples import add_corpus, corpus_row
from tests.full_disk import fill, make_room, run_on_small_disk


def insert(db: Database, size: int) -> None:
    with db.write() as conn:
        corpora.insert(conn, corpus_row(), [os.urandom(size)])


def full_database(folder: Path) -> None:
    url = f"sqlite:///{folder}/tagsmith.db"
    migrate.upgrade(url)
    db = Database(url)
    kept = add_corpus(db)
    fill(folder)
    for each in (db, Database(url)):  # with a connection that is open, and with a new one
        with pytest.raises(Unavailable, match="Free some space") as raised:
            insert(each, 3_000_000)
        assert raised.value.code == "disk_full"
        with each.read() as conn:
            assert corpora.get(conn, kept.id) == kept
        each.dispose()
    make_room(folder)
    insert(db, 1_000_000)
    with db.read() as conn:
        assert corpora.get(conn, kept.id) == kept
    db.dispose()


def full_from_the_start(folder: Path) -> None:
    url = f"sqlite:///{folder}/tagsmith.db"
    fill(folder)
    with pytest.raises(Unavailable, match="Free some space") as raised:
        migrate.upgrade(url)
    assert raised.value.code == "disk_full"
    make_room(folder)
    migrate.upgrade(url)


def test_a_full_disk_is_an_outage_in_every_connection_and_keeps_what_is_stored(tmp_path: Path) -> None:
    run_on_small_disk(full_database, tmp_path / "disk", "4m")


def test_a_database_cannot_be_made_on_a_full_disk(tmp_path: Path) -> None:
    run_on_small_disk(full_from_the_start, tmp_path / "disk", "2m")
