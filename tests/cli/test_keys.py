"""The first key by command, and the refusal to listen to others without one."""

import json
import os
from pathlib import Path

import pytest

from tagsmith.app.cli import keys as cli_keys
from tagsmith.cli import config
from tagsmith.cli.main import main
from tagsmith.core.base.errors import Conflict
from tagsmith.core.service.settings import ANYONE, Settings
from tagsmith.core.store import keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TAGSMITH_")]:
        monkeypatch.delenv(name)


def run(data_dir: Path, *arguments: str) -> int:
    return main(["keys", *arguments, "--data-dir", str(data_dir)])


def test_the_first_key_is_made_before_anything_was_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "create", "--scope", "admin", "--name", "operations") == 0
    token = capsys.readouterr().out.strip()
    database = Database(f"sqlite:///{tmp_path}/tagsmith.db")
    with database.read() as conn:
        key = keys.of_token(conn, token)
    database.dispose()
    assert key is not None
    assert (key.name, key.scopes, key.created_by) == ("operations", (Scope.ADMIN,), None)
    assert run(tmp_path, "create", "--scope", "read", "--scope", "tag", "--expires-in-days", "30") == 0
    capsys.readouterr()
    assert run(tmp_path, "revoke", key.id) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Revoked {key.id}.\n! It was the last admin key.")
    assert run(tmp_path, "list") == 0
    _, newer, older = capsys.readouterr().out.splitlines()
    assert "read, tag  never used  expires " in newer
    assert older.split() == [key.id, "admin", "never", "used", "revoked", "operations"]
    assert run(tmp_path, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[1]["id"] == key.id


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "--scope", "tag"), "The first key must have the scope `admin`."),
        (("create", "--scope", "root"), "Unknown scope 'root'. Use one of: read, tag"),
        (("create", "--scope", "admin", "--expires-in-days", "nan"), "--expires-in-days must be"),
        (("revoke", "key_none"), "There is no key key_none."),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, *arguments) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("command", [["create", "--scope", "admin"], ["list"], ["revoke", "key_x"]])
def test_no_command_creates_a_data_directory_that_is_not_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(config, "DEFAULT_URL", "http://127.0.0.1:1")
    assert main(["keys", *command]) == 2
    assert capsys.readouterr().err == (
        f"There is no data directory {tmp_path}/.tagsmith, and nothing answers at http://127.0.0.1:1. "
        "Give --data-dir or --url.\n"
    )
    monkeypatch.setenv("TAGSMITH_URL", "http://127.0.0.1:2")
    assert main(["keys", *command]) == 1
    assert "Nothing answers at http://127.0.0.1:2." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["up", "api"])
def test_without_a_key_the_server_refuses_to_listen_to_others(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--host", "0.0.0.0", "--port", "0", "--data-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "0.0.0.0 is reachable from other machines" in said
    assert f"--access {ANYONE}" in said


def test_a_usable_key_or_saying_so_in_words_lets_it_listen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def place(host: str, **others: str) -> None:
        cli_keys.require_key_unless_loopback(
            Settings.from_env({}, {"data_dir": tmp_path, "host": host, **others})
        )

    for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost"):
        place(host)
    place("0.0.0.0", access=ANYONE)
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(Conflict, match="reachable from other machines"):
            place(host)
    assert run(tmp_path, "create", "--scope", "admin") == 0
    key_id = capsys.readouterr().out[:30]
    place("0.0.0.0")
    assert run(tmp_path, "revoke", key_id) == 0
    with pytest.raises(Conflict):
        place("0.0.0.0")
