import os
import subprocess
import sys

import pytest

from tagsmith.core.service.settings import Settings
from tagsmith.worker.__main__ import limit_threads
from tests.worker.processes import ROOT


@pytest.mark.parametrize(("name", "value"), [("TAGSMITH_REDIS_URL", ""), ("TAGSMITH_LEASE_SECONDS", "soon")])
def test_a_worker_that_cannot_start_says_which_setting_is_wrong(name: str, value: str) -> None:
    environment = {key: text for key, text in os.environ.items() if not key.startswith("TAGSMITH_")}
    done = subprocess.run(
        [sys.executable, "-m", "worker"],
        cwd=ROOT,
        env=environment | {name: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_workers_share_the_cores_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "3"})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    limit_threads(Settings(workers=3))
    assert os.environ["NUMBA_NUM_THREADS"] == "2"
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_a_worker_always_has_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    limit_threads(Settings(workers=4))
    assert os.environ["NUMBA_NUM_THREADS"] == "1"
