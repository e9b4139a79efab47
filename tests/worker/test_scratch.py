"""Temporary files of jobs: none stays, not even of a worker that was killed."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tagsmith.worker import scratch

HOLDER = """
import time
from tagsmith.worker import scratch
with scratch.folder() as path:
    (path / "file").write_text("x")
    print(path, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_after_its_use(temporary: Path) -> None:
    with scratch.folder() as path:
        (path / "file").write_text("x")
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_killed_worker_is_removed_and_that_of_a_running_one_stays(temporary: Path) -> None:
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        path = Path(worker.stdout.readline().strip())
        with scratch.folder() as own:
            assert scratch.remove_leftovers() == 0
            assert path.is_dir()
            worker.kill()
            worker.wait()
            assert scratch.remove_leftovers() == 1
            assert not path.exists()
            assert own.is_dir()


def test_a_folder_without_a_lock_stays_while_it_may_be_in_the_making(temporary: Path) -> None:
    path = temporary / f"{scratch.PREFIX}new"
    path.mkdir()
    assert scratch.remove_leftovers() == 0
    long_ago = time.time() - 3600
    os.utime(path, (long_ago, long_ago))
    assert scratch.remove_leftovers() == 1
