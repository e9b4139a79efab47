import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.app.cli.rundir import RunDir
from tagsmith.cli.main import main
from tagsmith.core.service.settings import Settings


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TAGSMITH_")]:
        monkeypatch.delenv(name)


def test_version_names_the_package_and_the_revision(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("tagsmith 0.1.0")


@pytest.mark.parametrize("arguments", [[], ["corpora"], ["models"]])
def test_a_group_without_a_command_shows_its_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert f"Usage: {' '.join(['tagsmith', *arguments])} [OPTIONS] COMMAND" in said.out
    assert said.err == ""


def test_the_installed_command_is_the_module() -> None:
    command = Path(sys.executable).parent / "tagsmith"
    done = subprocess.run([str(command), "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tagsmith ")


@pytest.mark.parametrize("kind", ["references", "addresses"])
def test_the_same_seed_writes_the_same_corpus_to_a_file_and_to_standard_output(
    kind: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    out = tmp_path / "corpus.conll"
    arguments = ["corpus", "generate", "--kind", kind, "--sentences", "50", "--seed", "3"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert main(arguments) == 0
    written = capsysbinary.readouterr().out
    assert written == out.read_bytes()
    assert written.strip().count(b"\n\n") == 49
    assert main([*arguments[:-1], "4", "--out", str(out)]) == 0
    assert hashlib.sha256(out.read_bytes()).digest() != hashlib.sha256(written).digest()


def test_an_unknown_kind_of_corpus_is_a_sentence_and_not_a_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["corpus", "generate", "--kind", "poems"]) == 2
    said = capsys.readouterr().err
    assert "poems" in said
    assert "Traceback" not in said


def test_a_wrong_setting_is_a_sentence_and_not_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAGSMITH_PORT", "eighty")
    assert main(["up"]) == 2
    assert capsys.readouterr().err == "TAGSMITH_PORT is 'eighty', which is not a valid int.\n"


def test_up_refuses_a_data_directory_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunDir(tmp_path).claimed():
        assert main(["up", "--port", "0", "--data-dir", str(tmp_path)]) == 2
    assert f"Another tagsmith (pid {os.getpid()})" in capsys.readouterr().err


def test_up_refuses_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--port", str(port), "--data-dir", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"Cannot listen on 127.0.0.1 port {port}: Address already in use. Choose another --host or --port.\n"
    )


def test_up_gives_up_when_the_database_cannot_be_reached_and_leaves_no_redis(tmp_path: Path) -> None:
    environment = Settings.from_env({}, {"port": 0, "data_dir": tmp_path}).child_environment()
    environment["TAGSMITH_DATABASE_URL"] = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    done = subprocess.run(
        [sys.executable, "-m", "tagsmith.cli", "up"],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "The database could not be migrated." in done.stderr
    assert "bye bye" in done.stdout  # Redis said so: it was stopped, not abandoned


def test_health_is_the_answer_of_readyz(stack: BackgroundStack, capsys: pytest.CaptureFixture[str]) -> None:
    port = stack.url.rsplit(":", 1)[1]
    assert main(["health", "--port", port]) == 0
    assert main(["health", "--port", "1"]) == 1
    assert "refused" in capsys.readouterr().out


def test_migrate_can_be_run_again_and_again(tmp_path: Path) -> None:
    assert main(["migrate", "--data-dir", str(tmp_path)]) == 0
    assert main(["migrate", "--data-dir", str(tmp_path)]) == 0
    assert (tmp_path / "tagsmith.db").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "place", "wanted"), [("mod", 1, ["models"]), ("train x --trainer sgd-", 4, ["sgd-l1"])]
)
def test_the_shell_completes_commands_and_trainers(words: str, place: int, wanted: list[str]) -> None:
    variables = {"COMP_WORDS": f"tagsmith {words}", "COMP_CWORD": str(place)}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "tagsmith")],
        env={**os.environ, **variables, "_TAGSMITH_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == wanted
