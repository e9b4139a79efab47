"""`tagsmith backup` and `tagsmith restore`, between both dialects and all schemas."""

import json
import shutil
import stat
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tagsmith.app.cli.backup import restore, save
from tagsmith.cli.main import main
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.jobs import jobs
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import migrate, tables
from tagsmith.core.store.engine import Database
from tagsmith.core.store.states import State
from tests import services
from tests.core.store import filled, samples
from tests.full_disk import run_on_small_disk


def silent(_name: str, _fraction: float) -> None:
    """No progress."""


def settings_of(url: str, folder: Path) -> Settings:
    return Settings.from_env({}, {"database_url": url, "data_dir": folder})


@pytest.fixture
def new_database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Give a function that makes the address of an empty database of a dialect."""
    made: list[str] = []

    def make(dialect: str) -> str:
        if dialect == "sqlite":
            return f"sqlite:///{tempfile.mkdtemp(dir=tmp_path)}/tagsmith.db"
        made.append(request.getfixturevalue("postgres_databases").create())
        return made[-1]

    yield make
    for each in made:
        request.getfixturevalue("postgres_databases").drop(each)


def fill(url: str, revision: str = "head") -> dict[str, filled.Rows]:
    migrate.upgrade(url, revision)
    database = Database(url)
    with database.write() as conn:
        made = filled.fill(conn)
    database.dispose()
    return made


def stored(url: str) -> dict[str, filled.Rows]:
    database = Database(url)
    with database.read() as conn:
        found = filled.stored(conn)
    database.dispose()
    return found


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
@pytest.mark.parametrize("source", ["sqlite", "postgresql"])
def test_rows_of_every_table_come_back_in_either_database(
    source: str, target: str, new_database: Callable[[str], str], tmp_path: Path
) -> None:
    url, other = new_database(source), new_database(target)
    fill(url)
    before = stored(url)
    made = save.save(settings_of(url, tmp_path), tmp_path / "b.backup", silent)
    assert made["tables"] == {name: len(rows) for name, rows in before.items()}
    assert (made["files"], made["dialect"]) == (len(before["blob"]), source)
    restore.restore(settings_of(other, tmp_path), tmp_path / "b.backup", silent)
    after = stored(other)
    # What only the processes of its time could go on with is released: see below.
    for each in ("job", "event", "lease_clock"):
        before.pop(each), after.pop(each)
    assert after == before


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
@pytest.mark.parametrize("revision", migrate.known()[1:][::4])
def test_a_backup_of_an_older_schema_is_migrated(
    revision: str, dialect: str, new_database: Callable[[str], str], tmp_path: Path
) -> None:
    url, other = new_database(dialect), new_database("sqlite")
    before = fill(url, revision)
    assert save.save(settings_of(url, tmp_path), tmp_path / "b", silent)["schema"] == revision
    done = restore.restore(settings_of(other, tmp_path), tmp_path / "b", silent)
    assert (done["restored_from_schema"], done["schema"]) == (revision, migrate.head())
    for each in ("job", "event", "lease_clock"):
        before.pop(each, None)
    assert filled.lost(before, stored(other)) == []


def test_a_running_job_is_queued_again_without_a_loss_and_requests_in_progress_can_be_repeated(
    tmp_path: Path,
) -> None:
    url, other = f"sqlite:///{tmp_path}/a/tagsmith.db", f"sqlite:///{tmp_path}/b/tagsmith.db"
    migrate.upgrade(url)
    source = Database(url)
    running, queued = samples.add_running(source), samples.add_job(source)
    answer = {"attempt": "1", "expires_at": filled.AT}
    with source.write() as conn:
        jobs.mark_sent(conn, queued.id)
        conn.execute(tables.kept_answer.insert().values(id="open", **answer))
        conn.execute(tables.kept_answer.insert().values(id="answered", status=201, **answer))
    source.dispose()
    save.save(settings_of(url, tmp_path), tmp_path / "backup", silent)
    restore.restore(settings_of(other, tmp_path), tmp_path / "backup", silent)
    target = Database(other)
    with target.read() as conn:
        again = jobs.get(conn, running.id)
        assert (again.state, again.lease_owner) == (State.QUEUED, None)
        assert set(conn.scalars(sa.select(tables.job.c.losses))) == {0}
        assert {each.id for each in jobs.unsent(conn, filled.AT.replace(year=2100))} == {
            running.id,
            queued.id,
        }
        assert [job.sent_at for job in (again, jobs.get(conn, queued.id))] == [None, None]
        assert list(conn.scalars(sa.select(tables.kept_answer.c.id))) == ["answered"]
    target.dispose()


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup in a folder of its own."""
    (tmp_path / "kept").mkdir()
    fill(f"sqlite:///{tmp_path}/source/tagsmith.db")
    path = tmp_path / "kept" / "backup"
    save.save(settings_of(f"sqlite:///{tmp_path}/source/tagsmith.db", tmp_path / "source"), path, silent)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    capsys.readouterr()
    code = main([str(each) for each in arguments])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_only_the_owner_can_read_a_backup_and_no_file_is_replaced(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    before = backup.read_bytes()
    code, said = run(capsys, "backup", backup, "--data-dir", tmp_path / "source")
    assert (code, "exists. Give a new name" in said) == (2, True)
    assert backup.read_bytes() == before
    assert [each.name for each in backup.parent.iterdir()] == ["backup"]


def test_a_backup_of_nothing_is_refused_and_creates_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run(capsys, "backup", tmp_path / "b", "--data-dir", tmp_path / "none")
    assert (code, "There is no database" in said) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_both_commands_print_json(backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = run(capsys, "restore", backup, "--data-dir", tmp_path / "target", "--json")
    assert (code, json.loads(said)["tables"]["job"]) == (0, 2)
    assert sorted(each.name for each in (tmp_path / "target").iterdir()) == ["run", "tagsmith.db"]
    assert stat.S_IMODE((tmp_path / "target" / "tagsmith.db").stat().st_mode) == 0o600
    code, said = run(capsys, "backup", tmp_path / "c", "--data-dir", tmp_path / "target", "--json")
    assert (code, json.loads(said)["files"]) == (0, 8)


def test_a_target_with_a_database_is_refused(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (tmp_path / "source" / "tagsmith.db").read_bytes()
    code, said = run(capsys, "restore", backup, "--data-dir", tmp_path / "source")
    assert (code, "tagsmith.db exists. Restore into" in said) == (2, True)
    assert (tmp_path / "source" / "tagsmith.db").read_bytes() == before


def test_a_postgresql_database_with_tables_is_refused(
    backup: Path, postgres_databases: services.Databases, tmp_path: Path
) -> None:
    url = postgres_databases.create(migrate.upgrade)
    with pytest.raises(TagsmithError, match="is not empty: it has the table") as raised:
        restore.restore(settings_of(url, tmp_path), backup, silent)
    assert raised.value.code == "target_not_empty"
    postgres_databases.drop(url)


def test_an_interrupted_restore_leaves_an_empty_postgresql_database(
    backup: Path, postgres_databases: services.Databases, tmp_path: Path
) -> None:
    url = postgres_databases.create()

    def interrupt(name: str, fraction: float) -> None:
        if name == "checking the database" and fraction > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore.restore(settings_of(url, tmp_path), backup, interrupt)
    assert stored(url) == {}
    restore.restore(settings_of(url, tmp_path), backup, silent)
    assert len(stored(url)["job"]) == filled.ROWS
    postgres_databases.drop(url)


@pytest.mark.parametrize("phase", ["writing the backup", "checking the backup"])
def test_an_interrupted_backup_leaves_nothing(phase: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/source/tagsmith.db"
    fill(url)
    (tmp_path / "kept").mkdir()

    def interrupt(name: str, _fraction: float) -> None:
        if name == phase:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save.save(settings_of(url, tmp_path), tmp_path / "kept" / "backup", interrupt)
    assert list((tmp_path / "kept").iterdir()) == []


def without_room(disk: Path, folder: str) -> None:
    """Both commands, on a disk that has room for neither."""
    source = settings_of(f"sqlite:///{folder}/source/tagsmith.db", Path(folder) / "source")
    target = settings_of(f"sqlite:///{disk}/tagsmith.db", Path(folder) / "target")
    for call, settings, file in (
        (save.save, source, disk / "backup"),
        (restore.restore, target, Path(folder) / "kept" / "backup"),
    ):
        with pytest.raises(TagsmithError, match="Free some space") as raised:
            call(settings, file, silent)
        assert raised.value.code == "disk_full"
        assert list(disk.iterdir()) == []


def test_without_room_both_commands_say_so_and_leave_nothing(backup: Path, tmp_path: Path) -> None:
    assert backup.stat().st_size > 8192
    run_on_small_disk(without_room, tmp_path / "disk", "8k", str(tmp_path))


def test_damage_anywhere_is_found(backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = backup.read_bytes()
    with zipfile.ZipFile(backup) as archive:
        members = [each for each in archive.infolist() if each.file_size]
    # In the middle of the data of every member. Its header has the lengths of the name and of the extra field.
    headers = [each.header_offset for each in members]
    starts = [start + 30 + sum(struct.unpack_from("<HH", whole, start + 26)) for start in headers]
    places = [start + each.compress_size // 2 for start, each in zip(starts, members, strict=True)]
    damaged = tmp_path / "damaged"
    for place in places:
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        code, said = run(capsys, "restore", damaged, "--data-dir", tmp_path / "target")
        assert (code, ", or is damaged" in said) == (2, True), (place, said)
        assert run(capsys, "restore", damaged, "--check")[0] == 2
    for length in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        damaged.write_bytes(whole[:length])
        code, said = run(capsys, "restore", damaged, "--data-dir", tmp_path / "target")
        assert (code, ", or is damaged" in said) == (2, True), (length, said)
    assert not (tmp_path / "target" / "tagsmith.db").exists()
    assert run(capsys, "restore", backup, "--check")[0] == 0


def changed(backup: Path, **fields: Any) -> Path:
    """Copy a backup with other fields in its manifest."""
    path = backup.with_name("changed")
    with zipfile.ZipFile(backup) as old, zipfile.ZipFile(path, "w") as new:
        for each in old.infolist():
            data = old.read(each)
            if each.filename == "manifest.json":
                data = json.dumps({**json.loads(data), **fields}).encode()
            new.writestr(each, data)
    return path


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"schema": "9999"}, "has schema 9999, which is newer than this version of Tagsmith"),
        ({"format": 2}, "has format 2, which is newer than this version of Tagsmith"),
    ],
)
def test_a_newer_backup_is_refused(
    fields: dict[str, Any],
    sentence: str,
    backup: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said = run(capsys, "restore", changed(backup, **fields), "--data-dir", tmp_path / "target")
    assert (code, sentence in said) == (2, True), said
    assert not (tmp_path / "target").exists()


def test_a_stored_file_that_is_damaged_fails_the_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/source/tagsmith.db"
    fill(url)
    database = Database(url)
    with database.write() as conn:
        conn.execute(tables.blob_chunk.update().values(data=b"no zstd"))
    database.dispose()
    code, said = run(capsys, "backup", tmp_path / "b", "--data-dir", tmp_path / "source")
    assert (code, "cannot be decompressed" in said) == (2, True)
    assert not (tmp_path / "b").exists()


def test_a_folder_that_is_copied_can_be_used(backup: Path, tmp_path: Path) -> None:
    """As its docs say: a stopped server is backed up by copying its folder."""
    del backup
    shutil.copytree(tmp_path / "source", tmp_path / "copy")
    assert len(stored(f"sqlite:///{tmp_path}/copy/tagsmith.db")["job"]) == filled.ROWS
