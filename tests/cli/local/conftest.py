"""Commands with --local, in a folder that has a corpus, a model and a text."""

from pathlib import Path

import pytest

from tests.cli.command import CommandRunner, people


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandRunner:
    run = CommandRunner(monkeypatch, capsys, tmp_path, url="http://127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    Path("people.conll").write_text(people())
    run.ok("train", "--local", "people.conll", "--model", "m", "--passes", "1")
    Path("raw.txt").write_text("Ada wrote to Grace and Alan.\n")
    return run
