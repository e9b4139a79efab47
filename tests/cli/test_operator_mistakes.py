"""Mistakes of operators: settings that do not exist, files that are no databases, a server that still runs."""

from pathlib import Path

import pytest

from tagsmith.app.cli.rundir import RunDir
from tagsmith.cli.main import main
from tagsmith.core.service.settings import Settings

Said = pytest.CaptureFixture[str]


def said(capsys: Said, *arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code and all that it printed."""
    code = main([str(each) for each in arguments])
    out, err = capsys.readouterr()
    return code, out + err


@pytest.fixture
def data_dir(tmp_path: Path, capsys: Said) -> Path:
    """A data directory with a database."""
    code, text = said(capsys, "migrate", "--data-dir", tmp_path / "data")
    assert (code, "newest schema" in text) == (0, True), text
    return tmp_path / "data"


@pytest.fixture
def backup(data_dir: Path, tmp_path: Path, capsys: Said) -> Path:
    assert said(capsys, "backup", tmp_path / "b.backup", "--data-dir", data_dir)[0] == 0
    return tmp_path / "b.backup"


def test_a_backup_is_not_restored_under_a_running_server(backup: Path, tmp_path: Path, capsys: Said) -> None:
    target = tmp_path / "served"
    with RunDir(target).locked():
        code, text = said(capsys, "restore", backup, "--data-dir", target)
    assert (code, "Stop it or choose another --data-dir" in text) == (2, True), text
    assert not (target / "tagsmith.db").exists()
    code, text = said(capsys, "restore", backup, "--data-dir", target)
    assert (code, f"tagsmith up --data-dir {target}" in text.replace("\n", "")) == (0, True), text


def test_all_files_of_a_database_are_named_that_are_in_the_way(
    backup: Path, data_dir: Path, capsys: Said
) -> None:
    (data_dir / "tagsmith.db-wal").touch()
    code, text = said(capsys, "restore", backup, "--data-dir", data_dir)
    assert (code, "tagsmith.db and tagsmith.db-wal" in text) == (2, True), text


def test_a_file_that_is_no_backup_is_said_to_be_none(tmp_path: Path, capsys: Said) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing")
    code, text = said(capsys, "restore", path, "--check")
    assert (code, "is not a backup of Tagsmith" in text) == (2, True), text


@pytest.mark.parametrize("length", [0.3, 100])
def test_a_damaged_database_is_a_sentence(
    data_dir: Path, tmp_path: Path, capsys: Said, length: float
) -> None:
    path = data_dir / "tagsmith.db"
    whole = path.read_bytes()
    # Cut in the middle, or another file altogether.
    path.write_bytes(whole[: int(length * len(whole))] if length < 1 else b"text " * 100)
    code, text = said(capsys, "backup", tmp_path / "c.backup", "--data-dir", data_dir)
    assert (code, "tagsmith restore" in text, "Traceback" in text) == (2, True, False), text


def test_a_setting_that_is_misspelt_is_told(
    data_dir: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAGSMITH_MAX_REQUEST_PER_SECOND", "5")
    monkeypatch.setenv("TAGSMITH_KEY", "k")
    monkeypatch.setenv("TAGSMITH_SOMETHING_ELSE_ENTIRELY", "x")
    code, text = said(capsys, "migrate", "--data-dir", data_dir)
    assert (code, "Did you mean TAGSMITH_MAX_REQUESTS_PER_SECOND?" in text) == (0, True), text
    assert list(Settings.misspelt()) == ["TAGSMITH_MAX_REQUEST_PER_SECOND"]
