import asyncio
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tagsmith.app.cli import children
from tagsmith.app.cli.children import Child, ChildSpec
from tagsmith.app.cli.console import Console
from tagsmith.app.cli.rundir import RunDir
from tagsmith.core.service.settings import Settings


class Shown(Console):
    """A console that tells what it shows."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        super().__init__(self.text)

    def getvalue(self) -> str:
        self.flush()
        return self.text.getvalue()


def make(code: str, output: Shown, rundir: RunDir | None = None, stop_timeout_s: float = 5.0) -> Child:
    environment = Settings.from_env({}).child_environment()
    spec = ChildSpec("probe", (sys.executable, "-c", code), environment, stop_timeout_s)
    return Child(spec, output, rundir)


async def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.01)


def test_each_line_of_a_child_is_passed_on_with_its_name() -> None:
    output = Shown()
    child = make("print('one\\ntwo'); print('no newline', end='')", output)
    assert asyncio.run(child.run_once()) == 0
    assert output.getvalue() == "probe    | one\nprobe    | two\nprobe    | no newline\n"


def test_a_line_without_end_is_passed_on_in_pieces_and_loses_nothing() -> None:
    output = Shown()
    child = make("print('x' * 300_000)", output)
    assert asyncio.run(child.run_once()) == 0
    lines = output.getvalue().splitlines()
    assert len(lines) > 1
    assert sum(line.count("x") for line in lines) == 300_000


def test_a_dead_child_is_started_again_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MIN_RESTART_DELAY_S", 0.05)
    output = Shown()

    async def play() -> None:
        child = make("raise SystemExit(3)", output)
        child.start()
        await until(lambda: child.restarts >= 3)
        await child.stop()

    asyncio.run(play())
    said = [line for line in output.getvalue().splitlines() if "ended with code 3" in line]
    assert [line.rsplit(" in ")[1] for line in said[:3]] == ["0.05 s", "0.1 s", "0.2 s"]


def test_a_child_that_ignores_sigterm_is_killed_at_its_deadline() -> None:
    output = Shown()
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('ready', flush=True); time.sleep(3600)"
    )

    async def play() -> float:
        child = make(code, output, stop_timeout_s=0.3)
        child.start()
        await until(lambda: "ready" in output.getvalue())
        began = time.monotonic()
        await child.stop()
        return time.monotonic() - began

    assert asyncio.run(play()) >= 0.3
    assert "probe did not stop in 0.3 s; killing it" in output.getvalue()


def test_killing_a_child_takes_the_processes_it_started(tmp_path: Path) -> None:
    output = Shown()
    code = (
        "import subprocess, sys, time;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print('pid', p.pid, flush=True); time.sleep(60)"
    )

    async def play() -> int:
        child = make(code, output)
        child.start()
        await until(lambda: "pid" in output.getvalue())
        child.kill()
        await child.stop()
        return int(output.getvalue().split("pid ")[1].split()[0])

    grandchild = asyncio.run(play())
    end = time.monotonic() + 60
    while psutil.pid_exists(grandchild) and psutil.Process(grandchild).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_pid_file_is_there_exactly_as_long_as_the_child(tmp_path: Path) -> None:
    output = Shown()
    rundir = RunDir(tmp_path)
    pid_file = tmp_path / "run" / "probe.pid"

    async def play() -> None:
        child = make("print('ready', flush=True); import time; time.sleep(60)", output, rundir)
        child.start()
        await until(lambda: "ready" in output.getvalue())
        assert pid_file.exists()
        await child.stop()

    with rundir.claimed():
        asyncio.run(play())
        assert not pid_file.exists()
