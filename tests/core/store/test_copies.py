"""Copies of SQLite files: only one that was made in use, without its write-ahead log, is refused."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tagsmith.cli.main import main
from tagsmith.core.base.errors import Conflict
from tagsmith.core.store import corpora, migrate
from tagsmith.core.store.engine import Database
from tests.core.store.samples import add_corpus

#: A process that stores a corpus and keeps the file open.
USER = """
import sys, time
from tagsmith.core.store.engine import Database
from tests.core.store.samples import add_corpus
print(add_corpus(Database(sys.argv[1])).id, flush=True)
time.sleep(600)
"""


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A file that was used and closed."""
    path = tmp_path / "source" / "tagsmith.db"
    migrate.upgrade(url_of(path))
    return path


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def copied(path: Path, *, log: bool = False) -> Path:
    target = path.parent.parent / "copy" / path.name
    target.parent.mkdir()
    shutil.copyfile(path, target)
    if log:
        shutil.copyfile(f"{path}-wal", f"{target}-wal")
    return target


def has(path: Path, corpus_id: str) -> bool:
    db = Database(url_of(path))
    try:
        with db.read() as conn:
            return corpus_id in {each.id for each in corpora.page(conn, 100).data}
    finally:
        db.dispose()


def test_a_copy_of_a_file_in_use_without_its_log_is_refused_until_it_is_accepted(
    used: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = Database(url_of(used))
    row = add_corpus(db)
    copy = copied(used)
    db.dispose()
    for _ in range(2):  # refusing it leaves it as it is
        with pytest.raises(Conflict, match=r"made without its write-ahead log tagsmith\.db-wal") as raised:
            has(copy, row.id)
        assert raised.value.code == "incomplete_copy"
    assert main(["keys", "list", "--data-dir", str(copy.parent)]) == 2
    assert "use `tagsmith backup`" in capsys.readouterr().err
    assert main(["migrate", "--accept-copy", "--data-dir", str(copy.parent)]) == 0
    assert not has(copy, row.id)  # so it was right to refuse it
    assert has(used, row.id)


def test_a_copy_that_is_made_during_a_checkpoint_is_refused(used: Path) -> None:
    db = Database(url_of(used))
    add_corpus(db, os.urandom(1_000_000))
    copy = used.parent.parent / "torn.db"
    with used.open("rb") as source, copy.open("wb") as target:
        target.write(source.read(used.stat().st_size // 2))
        with closing(sqlite3.connect(used)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfileobj(source, target)
    with pytest.raises(Conflict, match="write-ahead log"):
        has(copy, "")
    db.dispose()


def test_a_copy_with_its_log_is_whole(used: Path) -> None:
    db = Database(url_of(used))
    row = add_corpus(db)
    assert has(copied(used, log=True), row.id)
    db.dispose()


def test_a_copy_of_a_closed_file_is_whole_and_can_be_copied_again(used: Path, tmp_path: Path) -> None:
    db = Database(url_of(used))
    row = add_corpus(db)
    db.dispose()
    copy = copied(used)
    assert has(copy, row.id)
    shutil.copyfile(copy, tmp_path / "third.db")
    assert has(tmp_path / "third.db", row.id)


@pytest.mark.parametrize("way", ["backup", "vacuum"])
def test_copies_that_sqlite_makes_of_a_file_in_use_are_whole(used: Path, tmp_path: Path, way: str) -> None:
    db = Database(url_of(used))
    row = add_corpus(db)
    target = tmp_path / "copy.db"
    with closing(sqlite3.connect(used)) as source:
        if way == "backup":
            with closing(sqlite3.connect(target)) as copy:
                source.backup(copy)
        else:
            source.execute("VACUUM INTO ?", [str(target)])
    assert has(target, row.id)
    db.dispose()


@pytest.mark.parametrize("recovered", [True, False])
def test_a_file_whose_process_was_killed_is_opened_where_it_is(used: Path, recovered: bool) -> None:
    process = subprocess.Popen([sys.executable, "-c", USER, url_of(used)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    row_id = process.stdout.readline().strip()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    if recovered:  # by a tool that knows nothing of marks, and deletes the log
        with closing(sqlite3.connect(used)) as tool:
            tool.execute("SELECT count(*) FROM corpus").fetchone()
        assert not Path(f"{used}-wal").exists()
    assert has(used, row_id)


def test_a_file_that_another_process_uses_keeps_its_mark(used: Path) -> None:
    db, other = Database(url_of(used)), Database(url_of(used))
    row = add_corpus(db)
    with other.read() as conn:
        corpora.get(conn, row.id)
    other.dispose()
    with pytest.raises(Conflict, match="write-ahead log"):
        has(copied(used), row.id)
    db.dispose()
