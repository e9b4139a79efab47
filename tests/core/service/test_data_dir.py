"""A data directory that cannot be used is reported with the reason and the remedy."""

import os
import shutil
from pathlib import Path

import pytest

from tagsmith.cli import main as command
from tagsmith.cli.errors import USER_ERROR
from tagsmith.core.base.errors import Unavailable
from tagsmith.core.service import data_dir


def test_a_missing_directory_is_created_with_its_parents(tmp_path: Path) -> None:
    data_dir.prepare(tmp_path / "a" / "b")
    assert os.listdir(tmp_path / "a" / "b") == []


def test_only_the_owner_reads_the_directory(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.mkdir(mode=0o755)
    for path in (new, old):
        data_dir.prepare(path)
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_created_or_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "below", Path("/proc/no-such-directory")):
        with pytest.raises(Unavailable) as raised:
            data_dir.prepare(path)
        assert raised.value.code == "data_dir_unusable"
        assert str(path) in raised.value.message
        assert "--data-dir" in raised.value.message


def test_a_full_disk_is_reported_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(10**9, 10**9 - 5_000_000, 5_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(Unavailable) as raised:
        data_dir.prepare(tmp_path)
    assert raised.value.code == "disk_full"
    assert "only 4 MiB left" in raised.value.message


@pytest.mark.parametrize("arguments", [["up"], ["migrate"], ["keys", "list"], ["api", "--port", "0"]])
def test_every_command_says_it_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / "file").touch()
    assert command.main([*arguments, "--data-dir", str(tmp_path / "file" / "below")]) == USER_ERROR
    said = capsys.readouterr().err
    assert said.startswith("The data directory ")
    assert "Traceback" not in said
