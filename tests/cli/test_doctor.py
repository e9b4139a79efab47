"""What `doctor` says of Redis."""

import json
from pathlib import Path
from typing import Any

import pytest

from tagsmith.app.cli import private_redis
from tests.cli.command import CommandRunner


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandRunner:
    monkeypatch.setenv("TAGSMITH_DATA_DIR", str(tmp_path / "data"))
    return CommandRunner(monkeypatch, capsys, tmp_path, url="http://127.0.0.1:1")


def redis_finding(run: CommandRunner) -> dict[str, Any]:
    (found,) = (each for each in json.loads(run("doctor", "--json").out) if each["name"] == "redis")
    return dict(found)


def test_the_embedded_server_is_named_with_its_version(said: CommandRunner) -> None:
    server = private_redis.find_binary()
    finding = redis_finding(said)
    assert finding["verdict"] == "ok"
    assert finding["found"].startswith(f"{server.product} {'.'.join(map(str, server.version))}, embedded")


def test_a_current_server_is_fine_and_an_old_one_is_a_warning(
    said: CommandRunner, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAGSMITH_REDIS_URL", redis_url)
    assert redis_finding(said)["verdict"] == "ok"
    monkeypatch.setattr(private_redis, "OLDEST", (99, 1, 0))
    finding = redis_finding(said)
    assert finding["verdict"] == "warning"
    assert finding["remedy"] == "It gets no security fixes. Use 99.1 or newer."
