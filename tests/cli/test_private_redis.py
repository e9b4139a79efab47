import stat
import tempfile
from collections.abc import Callable, Iterator
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


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Puts programs on PATH that print a version and do nothing else."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name: str, version: str) -> Path:
        program = tmp_path / name
        product = name.partition("-")[0].capitalize()
        program.write_text(f"#!/bin/sh\necho '{product} server v={version} sha=00000000:0 malloc=libc'\n")
        program.chmod(0o755)
        private_redis.find_binary.cache_clear()
        return program

    private_redis.find_binary.cache_clear()
    yield put
    private_redis.find_binary.cache_clear()


def test_the_bundled_server_is_current(on_path: Callable[[str, str], Path]) -> None:
    found = private_redis.find_binary()
    assert found.product == "valkey"
    assert found.version >= (9, 1, 2)


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        ({"redis-server": "5.0.7"}, None),
        ({"redis-server": "6.2.14", "valkey-server": "8.1.0"}, None),
        ({"redis-server": "99.0.1"}, "redis-server"),
        ({"redis-server": "99.0.1", "valkey-server": "99.0.10"}, "valkey-server"),
    ],
)
def test_the_newest_server_is_chosen(
    on_path: Callable[[str, str], Path], installed: dict[str, str], chosen: str | None
) -> None:
    programs = {name: on_path(name, version) for name, version in installed.items()}
    bundled = private_redis._bundled()
    assert bundled is not None
    assert private_redis.find_binary().path == (Path(bundled) if chosen is None else programs[chosen])


@pytest.mark.parametrize("version", [None, "6.2.14", "7.0.15"])
def test_without_a_recent_server_the_error_says_what_to_set(
    on_path: Callable[[str, str], Path], version: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_redis, "_bundled", lambda: None)
    if version is not None:
        on_path("redis-server", version)
    with pytest.raises(Unavailable, match=r"7\.2 or newer.*TAGSMITH_REDIS_URL"):
        private_redis.find_binary()


def test_files_that_another_server_left_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    (folder / "aof-redis-8").mkdir(parents=True)
    (folder / "appendonlydir").mkdir()
    for name in (
        "appendonly.aof",
        "aof-redis-8/appendonly.aof.1.base.rdb",
        "appendonlydir/appendonly.aof.manifest",
    ):
        (folder / name).write_bytes(b"REDIS0099 of a later version")
    server = services.RedisServer(folder)
    server.start()
    try:
        kept = {path.name for path in folder.glob("a*")}
        assert kept == {private_redis.find_binary().append_directory}
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", "1")
    finally:
        server.stop()
    # Its own files are read again.
    again = services.RedisServer(folder)
    again.start()
    try:
        with redis.Redis.from_url(again.url) as client:
            assert client.get("kept") == b"1"
    finally:
        again.stop()
