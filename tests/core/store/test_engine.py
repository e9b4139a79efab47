import multiprocessing
import os
import sqlite3
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, StatementError

from tagsmith.core.base.errors import Unavailable
from tagsmith.core.jobs import control, events, jobs
from tagsmith.core.jobs.events import Draft
from tagsmith.core.store import clock, corpora
from tagsmith.core.store.engine import Database
from tagsmith.core.store.ids import ALPHABET, new_id
from tests.core.store.samples import add_corpus, add_job, corpus_row

WRITERS = 4
#: Of each of their two threads.
TRANSACTIONS = 40


def write_often(url: str) -> list[str]:
    """Read, then write, as fast as possible, from two threads; list the errors."""
    db = Database(url)
    job = add_job(db)

    def write(_: int) -> list[str]:
        errors = []
        for _ in range(TRANSACTIONS):
            try:
                with db.write() as conn:
                    seen = jobs.get(conn, job.id)
                    events.append(conn, job.id, [Draft("message", f"after {seen.last_seq}")])
                with db.read() as conn:
                    jobs.get(conn, job.id)
            except Exception as error:  # noqa: BLE001  # every kind counts
                errors.append(repr(error))
        return errors

    with ThreadPoolExecutor(2) as pool:
        errors = [text for found in pool.map(write, range(2)) for text in found]
    with db.read() as conn:
        assert jobs.get(conn, job.id).last_seq == 1 + 2 * TRANSACTIONS - len(errors)
    db.dispose()
    return errors


def test_four_writing_processes_never_find_the_database_locked(sqlite_url: str) -> None:
    with ProcessPoolExecutor(WRITERS, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(write_often, [sqlite_url] * WRITERS)) == [[]] * WRITERS


def test_a_read_connection_sees_one_state_and_cannot_write(db: Database) -> None:
    job = add_job(db)
    with db.read() as reader:
        before = jobs.get(reader, job.id)
        with db.write() as writer:
            control.cancel(writer, job.id)
        assert jobs.get(reader, job.id) == before
    with pytest.raises(DBAPIError), db.read() as reader:
        control.cancel(reader, job.id)


def test_an_exception_undoes_everything(db: Database) -> None:
    row = corpus_row()
    with pytest.raises(ZeroDivisionError), db.write() as conn:
        corpora.insert(conn, row, (bytes(1 // size) for size in (1, 0)))
    with db.read() as conn:
        assert row.id not in {each.id for each in corpora.page(conn, 1000).data}


def test_a_forked_child_opens_connections_of_its_own(db: Database) -> None:
    job = add_job(db)
    with db.read() as conn:
        jobs.get(conn, job.id)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with db.write() as conn:
                events.append(conn, job.id, [Draft("message", "from the child")])
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with db.write() as conn:
        (event,) = events.append(conn, job.id, [Draft("message", "from the parent")])
    assert event.seq == 3


def test_a_disposed_database_opens_again(db: Database) -> None:
    db.dispose()
    db.dispose()
    row = add_corpus(db)
    with db.read() as conn:
        assert corpora.get(conn, row.id) == row


@pytest.mark.parametrize("kind", ["read", "write"])
def test_what_is_in_use_when_a_database_is_disposed_of_is_closed_when_it_comes_back(
    db: Database, kind: str
) -> None:
    other = Database(db.url.render_as_string(hide_password=False))
    with getattr(other, kind)() as conn:
        used = conn.connection.dbapi_connection
        engine = conn.engine
        other.dispose()
        assert conn.execute(sa.text("SELECT 1")).scalar_one() == 1
    assert is_closed(used)
    # As a thread does that had the engine in hand already.
    with engine.connect() as conn:
        late = conn.connection.dbapi_connection
    assert is_closed(late)


def is_closed(connection: Any) -> bool:
    """Tell for either driver."""
    try:
        connection.cursor().execute("SELECT 1")
    except (psycopg.OperationalError, sqlite3.ProgrammingError):
        return True
    return False


def test_naive_times_are_refused_and_others_come_back_in_utc(db: Database) -> None:
    row = corpus_row()
    plus_five = timezone(timedelta(hours=5))
    at = datetime(2026, 3, 1, 2, 30, 0, 1, tzinfo=plus_five)
    values = {name: getattr(row, name) for name in corpora.CorpusRow.__dataclass_fields__}
    with pytest.raises((StatementError, ValueError)), db.write() as conn:
        corpora.insert(conn, corpora.CorpusRow(**values | {"created_at": at.replace(tzinfo=None)}), [b"x"])
    with db.write() as conn:
        corpora.insert(conn, corpora.CorpusRow(**values | {"created_at": at}), [b"x"])
    with db.read() as conn:
        found = corpora.get(conn, row.id).created_at
        now = clock.now(conn)
    assert (found, found.tzinfo) == (at, UTC)
    assert clock.rfc3339(found) == "2026-02-28T21:30:00.000001Z"
    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(seconds=60)


def test_an_absent_server_is_unavailable() -> None:
    db = Database("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(Unavailable) as caught, db.read():
        pass
    assert caught.value.code == "database_unavailable"


def test_a_locked_file_is_unavailable_after_the_wait(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagsmith.core.store.engine.PRAGMAS", ("busy_timeout=50",))
    db = Database(sqlite_url)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable), db.write():
        pass
    other.execute("ROLLBACK")
    other.close()
    with db.write() as conn:
        assert conn.execute(sa.text("SELECT 1")).scalar_one() == 1
    db.dispose()


def test_sqlite_runs_as_configured(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    wanted = {"foreign_keys": 1, "journal_mode": "wal", "synchronous": 1, "busy_timeout": 30_000}
    for open_connection in (db.read, db.write):
        with open_connection() as conn:
            found = {name: conn.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in wanted}
        assert found == wanted
    db.dispose()


def test_a_mistake_of_ours_is_not_called_an_outage(db: Database) -> None:
    with pytest.raises(DBAPIError), db.read() as conn:
        conn.execute(sa.text("SELECT * FROM no_such_table"))


def test_an_sqlite_folder_is_made_at_first_use(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/a/b/c.db")
    with db.read() as conn:
        assert conn.execute(sa.text("SELECT 1")).scalar_one() == 1
    db.dispose()


def test_ids_have_a_prefix_sort_by_time_and_do_not_repeat() -> None:
    made = []
    for _ in range(5):
        made.append(new_id("crp"))
        start = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == start:
            pass
    assert made == sorted(made)
    assert all(
        each.startswith("crp_") and len(each) == 30 and set(each[4:]) <= set(ALPHABET) for each in made
    )
    assert len({new_id("job") for _ in range(10_000)}) == 10_000


def test_a_full_disk_is_told_with_the_remedy(sqlite_url: str) -> None:
    db = Database(sqlite_url)

    def fill() -> None:
        with db.write() as conn:
            conn.exec_driver_sql("PRAGMA max_page_count=1")  # no page more than there are
            corpora.insert(conn, corpus_row(), [os.urandom(5_000_000)])

    with pytest.raises(Unavailable, match="Free some space") as raised:
        fill()
    assert raised.value.code == "disk_full"
    db.dispose()
