"""The commands of the README do what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client

ROOT = Path(__file__).parents[2]


def run_script(text: str, stack: BackgroundStack, folder: Path) -> str:
    """Run commands of a document against a running stack, and give what they printed."""
    script = text.replace("http://127.0.0.1:8765", stack.url)
    assert stack.url in script
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_walk_through_runs_as_it_stands(stack: BackgroundStack, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## A walk through the HTTP API")[1].split("\n## ")[0]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    run_script(found[1], stack, tmp_path)
    with Client(stack.url) as client:
        assert [(version.version, version.corpus is not None) for version in client.versions("refs")] == [
            (2, True),
            (1, True),
        ]
        assert client.alias("refs", "champion").version == 1
        assert [move.reason for move in client.history("refs")][:2] == ["worse on dates", "smaller"]


def test_every_make_target_the_documents_name_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        named = set(re.findall(r"(?:`|^)make ([a-z]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, f"{document.name} names {named - targets}"
