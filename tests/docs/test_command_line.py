"""The first commands of docs/command-line.md do what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tagsmith.app.cli.background import BackgroundStack
from tests.cli.command import people

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
SERVED, LOCAL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[:2]


def _run(script: str, folder: Path, **variables: str) -> str:
    (folder / "people.conll").write_text(people())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_CONFIG_HOME": str(folder), **variables}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_three_commands_tag_a_sentence_with_a_server(stack: BackgroundStack, tmp_path: Path) -> None:
    first, *rest = SERVED.splitlines()
    assert first.startswith("tagsmith up ")  # the stack of the tests stands in for it
    out = _run("\n".join(rest), tmp_path, TAGSMITH_URL=stack.url)
    assert "Ada Lovelace\tPER\t" in out
    assert "Charles Babbage\tPER\t" in out


def test_two_commands_tag_a_sentence_without_one(tmp_path: Path) -> None:
    out = _run(LOCAL, tmp_path, TAGSMITH_URL="http://127.0.0.1:1")
    assert "Ada Lovelace\tPER\t" in out
    assert (tmp_path / "people.tagsmith").is_file()
