"""One server, a corpus file and a model for all tests of commands against a server."""

from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tests.cli.command import CommandRunner, people

MODEL = "cli-people"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    stack: BackgroundStack,
) -> CommandRunner:
    return CommandRunner(monkeypatch, capsys, tmp_path, url=stack.url)


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpora") / "cli-people.conll"
    path.write_text(people())
    return path


@pytest.fixture(scope="session")
def trained(stack: BackgroundStack, corpus_file: Path) -> str:
    """The name of a model with two versions."""
    with Client(stack.url) as client:
        corpus = client.upload(corpus_file, "cli-people")
        for passes in (3, 4):
            spec = {"model": MODEL, "corpus": corpus.id, "trainer": {"kind": "sgd-l1", "passes": passes}}
            job = client.submit({"kind": "train", "dev": {"fraction": 0.2}, **spec})
            assert client.wait(job.id).state == "succeeded"
    return MODEL
