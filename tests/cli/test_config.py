"""Where the server is and which key to send."""

from pathlib import Path

import pytest

from tagsmith.cli import config
from tagsmith.cli.errors import CommandError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TAGSMITH_URL", "TAGSMITH_KEY"):
        monkeypatch.delenv(name, raising=False)
    path = config.path()
    path.parent.mkdir()
    path.touch(mode=0o600)
    return path


def test_options_come_before_the_environment_and_that_before_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('url = "http://file:1/"\nkey = "of the file"\n')
    assert (config.chosen_url(None), config.chosen_key()) == ("http://file:1", "of the file")
    monkeypatch.setenv("TAGSMITH_URL", "http://environment:1")
    monkeypatch.setenv("TAGSMITH_KEY", "of the environment")
    assert (config.chosen_url(None), config.chosen_key()) == ("http://environment:1", "of the environment")
    assert config.chosen_url("http://option:1") == "http://option:1"


def test_without_anything_it_is_the_default_of_up_and_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    for name in ("TAGSMITH_URL", "TAGSMITH_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert (config.chosen_url(None), config.chosen_key()) == ("http://127.0.0.1:8765", None)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_can_read_is_refused_with_the_remedy(file: Path, mode: int) -> None:
    file.write_text('key = "secret"\n')
    file.chmod(mode)
    with pytest.raises(CommandError, match=f"mode 0{mode:o}.*chmod 600 {file}"):
        config.chosen_key()


@pytest.mark.parametrize(
    ("text", "says"),
    [("key = ", "not valid TOML"), ('tokne = "x"', "tokne is not a setting"), ("key = 1", "key is not")],
)
def test_a_file_with_faults_is_refused(file: Path, text: str, says: str) -> None:
    file.write_text(text)
    with pytest.raises(CommandError, match=says):
        config.chosen_key()
