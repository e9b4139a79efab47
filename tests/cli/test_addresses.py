"""Addresses and keys that are wrong: the message names the mistake, and shows neither keys nor pages of others."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tagsmith.client import ApiError, Client, ServerAway
from tests.cli.command import CommandRunner


class OtherProgram(BaseHTTPRequestHandler):
    """A server of something else: JSON of another shape for models, a page for everything else."""

    def do_GET(self) -> None:
        found = self.path.startswith("/models")
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b'{"status": "fine"}' if found else b"<html><body>Nothing here</body></html>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), OtherProgram)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandRunner:
    return CommandRunner(monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize(("arguments", "status"), [(["models", "ls"], 200), (["jobs", "ls"], 404)])
def test_a_server_of_another_program_is_named(
    run: CommandRunner, other: str, arguments: list[str], status: int
) -> None:
    ran = run(*arguments, "--url", other)
    says = f"{other} answers ({status}), but not as Tagsmith does. Correct the address.\n"
    assert (ran.code, ran.err) == (2, says)


@pytest.mark.parametrize("address", ["127.0.0.1:8899", "localhost", "localhost:1", "ftp://localhost"])
def test_an_address_needs_a_scheme(run: CommandRunner, address: str) -> None:
    says = f"The address {address} of the server does not begin with http:// or https://. Write, for example, http://"
    ran = run("models", "ls", "--url", address)
    assert ran.code == 2
    assert ran.err.startswith(says)
    with pytest.raises(ValueError, match="does not begin with http"):
        Client(address)


def test_an_address_that_cannot_be_read_is_refused(run: CommandRunner) -> None:
    ran = run("models", "ls", "--url", "http://localhost:port")
    assert (ran.code, "is not valid" in ran.err) == (2, True)


@pytest.mark.parametrize("key", ["se\ncret", "se cret", "sécret"])
def test_a_key_that_is_none_is_refused_and_not_shown(
    run: CommandRunner, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("TAGSMITH_KEY", key)
    ran = run("models", "ls")
    assert (ran.code, "cret" in ran.err) == (2, False)
    assert ran.err.startswith("The key has characters that no key has")


def test_blanks_around_a_key_are_removed(other: str) -> None:
    with Client(other, key=" secret \n") as client:
        assert client._http.headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("name", [".", ".."])
def test_dots_are_names_and_not_folders(other: str, name: str) -> None:
    with Client(other) as client, pytest.raises(ApiError) as caught:
        client.corpus(name)
    assert caught.value.status == 404


def test_a_server_that_is_away_is_an_error_of_the_client() -> None:
    with Client("http://127.0.0.1:1", retries=0) as client, pytest.raises(ServerAway) as caught:
        client.job("x")
    assert str(caught.value) == (
        "Nothing answers at http://127.0.0.1:1. Start it with `tagsmith up`, or set TAGSMITH_URL."
    )
