import subprocess
import sys

import psutil

from tagsmith.core.service.settings import Settings
from tests.services import wait_until

#: A parent with a handler of its own, whose child says who it is and then takes its time to become another program.
SLOW_TO_START = """
import os, signal, subprocess, time
from tagsmith.app.cli import process

def prepare():
    bind()
    os.write(1, b"%d\\n" % os.getpid())
    end = time.monotonic() + 1
    while time.monotonic() < end:
        time.sleep(0.05)

signal.signal(signal.SIGTERM, lambda *_: None)
bind = process.die_with_parent()
subprocess.Popen(["sleep", "60"], preexec_fn=prepare)
"""


def test_a_parent_that_dies_before_its_child_is_a_program_takes_it_along() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_START],
        env=Settings.from_env({}).child_environment(),
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        wait_until(lambda: not _runs(child), lambda: f"{child} to end")


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
