import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tagsmith.app.cli import process
from tagsmith.app.cli.rundir import RunDir
from tagsmith.core.base.errors import Conflict

SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")


def test_two_supervisors_cannot_share_a_data_directory_and_the_second_is_told_who_has_it(
    tmp_path: Path,
) -> None:
    with RunDir(tmp_path).claimed():
        with pytest.raises(Conflict, match=f"pid {os.getpid()}") as caught, RunDir(tmp_path).claimed():
            pass
        assert caught.value.code == "data_dir_in_use"
    with RunDir(tmp_path).claimed():
        pass


def test_what_a_crashed_supervisor_left_running_is_ended_at_the_next_start(tmp_path: Path) -> None:
    left_behind = subprocess.Popen(SLEEPER, start_new_session=True)
    (tmp_path / "run").mkdir()
    RunDir(tmp_path).record("worker-1", left_behind.pid)
    RunDir(tmp_path).write_state({"url": "http://127.0.0.1:1"})
    rundir = RunDir(tmp_path)
    with rundir.claimed():
        assert left_behind.poll() is not None
        assert list((tmp_path / "run").glob("*.pid")) == []
        assert not rundir.state_path.exists()


def test_a_process_that_only_got_the_same_pid_is_left_alone(tmp_path: Path) -> None:
    innocent = subprocess.Popen(SLEEPER, start_new_session=True)
    try:
        started_at = process.started_at(innocent.pid)
        assert started_at is not None
        (tmp_path / "run").mkdir()
        stale = tmp_path / "run" / "worker-1.pid"
        stale.write_text(json.dumps([innocent.pid, started_at - 3600]))
        with RunDir(tmp_path).claimed():
            assert innocent.poll() is None
            assert not stale.exists()
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.parametrize("content", ["", "garbage", "[1]", "[null, 5]", '["a", "b"]'])
def test_a_broken_pid_file_is_removed_and_stops_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "run").mkdir()
    broken = tmp_path / "run" / "redis.pid"
    broken.write_text(content)
    with RunDir(tmp_path).claimed():
        assert not broken.exists()


def test_temporary_files_of_a_killed_run_are_gone_at_the_next_start_and_those_of_this_one_at_its_end(
    tmp_path: Path,
) -> None:
    left_behind = tmp_path / "tmp" / "tagsmith-job-1" / "model"
    left_behind.parent.mkdir(parents=True)
    left_behind.write_bytes(b"half a model")
    rundir = RunDir(tmp_path)
    with rundir.claimed():
        assert list(rundir.scratch.iterdir()) == []
        (rundir.scratch / "new").touch()
    assert not rundir.scratch.exists()


def test_the_state_with_its_password_is_for_the_owner_only(tmp_path: Path) -> None:
    rundir = RunDir(tmp_path)
    with rundir.claimed():
        rundir.write_state({"redis_url": "redis://:secret@127.0.0.1:1/0"})
        assert stat.S_IMODE(rundir.state_path.stat().st_mode) == 0o600
        assert stat.S_IMODE(rundir.state_path.parent.stat().st_mode) == 0o700
    assert not rundir.state_path.exists()
