"""Two parsers as files, and the same on a server: every command is tried on both."""

from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests import parsers
from tests.cli.command import CommandRunner


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    stack: BackgroundStack,
) -> CommandRunner:
    return CommandRunner(monkeypatch, capsys, tmp_path, url=stack.url)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model files of a parser of four columns and of one of words, and trees."""
    folder = tmp_path_factory.mktemp("parsers")
    (folder / "columns.tagsmith").write_bytes(parsers.model_file())
    (folder / "words.tagsmith").write_bytes(parsers.model_file("form"))
    (folder / "trees.conllu").write_bytes(parsers.text(20, 5))
    return folder


@pytest.fixture(scope="session")
def served(stack: BackgroundStack, folder: Path) -> dict[str, str]:
    """The references of the same models on a server."""
    with Client(stack.url) as client:
        return {
            name: f"{name}-parser:{client.import_model(f'{name}-parser', folder / f'{name}.tagsmith').version}"
            for name in ("columns", "words")
        }


@pytest.fixture(params=["local", "server"])
def model(request: pytest.FixtureRequest, folder: Path) -> dict[str, list[str]]:
    """What to write for each model: with --local, or by its name on the server."""
    if request.param == "local":
        return {name: ["--local", str(folder / f"{name}.tagsmith")] for name in ("columns", "words")}
    served = request.getfixturevalue("served")
    return {name: [served[name]] for name in served}
