import subprocess
import sys

import pytest

from tagsmith.core.service.settings import Settings


@pytest.mark.timeout(300)
def test_the_demo_plays_to_the_end_and_teaches_the_calls() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tagsmith.cli", "demo", "--sentences", "500"],
        env=Settings.from_env({}).child_environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for call in (
        "/corpora?name=refs",
        "/jobs ",
        "/events",
        "/tag ",
        "/aliases/champion ",
        "/rollback",
        "/history",
    ):
        assert any("$ curl" in line and call in f"{line} " for line in done.stdout.splitlines()), call
    # Promoted by job 1, moved to version 2, rolled back to version 1: three moves, newest first.
    moves = [line.split()[0] for line in done.stdout.splitlines() if "-> refs:" in line]
    assert moves == ["3", "2", "1"]
    assert "\x1b[" not in done.stdout  # no terminal, no colours
