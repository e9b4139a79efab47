import traceback
from pathlib import Path

import pytest

from tagsmith.core.base.errors import Invalid
from tagsmith.core.service.settings import Settings


def test_defaults_are_a_loopback_service_with_an_sqlite_file_in_the_data_directory(tmp_path: Path) -> None:
    settings = Settings.from_env({"TAGSMITH_DATA_DIR": str(tmp_path)})
    assert (settings.host, settings.port, settings.redis_url) == ("127.0.0.1", 8765, None)
    assert settings.database_url == f"sqlite:///{tmp_path}/tagsmith.db"
    assert settings.cache_dir == tmp_path / "cache"
    assert (settings.max_upload_bytes, settings.max_corpus_bytes) == (268_435_456, 1_073_741_824)
    assert (settings.lease_seconds, settings.heartbeat_seconds) == (30.0, 10.0)


def test_every_field_can_be_set_by_its_variable() -> None:
    settings = Settings.from_env(
        {
            "TAGSMITH_PORT": "0",
            "TAGSMITH_REDIS_URL": "redis://example:6379/1",
            "TAGSMITH_DATABASE_URL": "postgresql+psycopg://example/db",
            "TAGSMITH_LEASE_SECONDS": "1.5",
            "TAGSMITH_HEARTBEAT_SECONDS": "0.5",
            "TAGSMITH_LOG_LEVEL": "DEBUG",
        }
    )
    assert (settings.port, settings.redis_url) == (0, "redis://example:6379/1")
    assert settings.database_url == "postgresql+psycopg://example/db"
    assert (settings.lease_seconds, settings.log_level, settings.logging_level) == (1.5, "debug", 10)


def test_an_empty_variable_means_the_default() -> None:
    settings = Settings.from_env({"TAGSMITH_PORT": "", "TAGSMITH_REDIS_URL": " "})
    assert (settings.port, settings.redis_url) == (8765, None)


def test_a_child_reads_the_very_same_settings(tmp_path: Path) -> None:
    settings = Settings.from_env({}, {"data_dir": tmp_path, "redis_url": "redis://example/0", "workers": 3})
    assert Settings.from_env(settings.child_environment()) == settings


def test_a_variable_of_the_parent_does_not_leak_into_a_child_that_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Settings.from_env({})
    monkeypatch.setenv("TAGSMITH_REDIS_URL", "redis://elsewhere/0")
    assert Settings.from_env(settings.child_environment()).redis_url is None


def test_an_override_wins_over_the_environment_and_none_is_no_override(tmp_path: Path) -> None:
    settings = Settings.from_env({"TAGSMITH_PORT": "1"}, {"port": 2, "host": None, "data_dir": tmp_path})
    assert (settings.port, settings.host) == (2, "127.0.0.1")
    assert str(tmp_path) in settings.database_url


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("TAGSMITH_PORT", "http", "not a valid int"),
        ("TAGSMITH_PORT", "70000", "a port from 0 to 65535"),
        ("TAGSMITH_WORKERS", "-1", "0 or more"),
        ("TAGSMITH_API_PROCESSES", "0", "a positive number"),
        ("TAGSMITH_LEASE_SECONDS", "nan", "a positive number"),
        ("TAGSMITH_HEARTBEAT_SECONDS", "31", "shorter than lease_seconds"),
        ("TAGSMITH_LOG_LEVEL", "loud", "one of debug"),
        ("TAGSMITH_ACCESS", "nobody", "keys or anyone-without-keys"),
        ("TAGSMITH_ALLOWED_HOSTS", "https://tags.example.org", "hosts such as tags.example.org"),
        ("TAGSMITH_ALLOWED_HOSTS", "*", "hosts such as tags.example.org"),
        ("TAGSMITH_DATABASE_URL", "tagsmith.db", "a URL such as"),
        ("TAGSMITH_REDIS_URL", "localhost:6379", "a URL such as"),
        ("TAGSMITH_JOB_MEMORY_BYTES", "0", "a positive number"),
        ("TAGSMITH_MAX_REQUESTS_PER_SECOND", "inf", "a positive number"),
        ("TAGSMITH_WORKER_QUEUES", "fast", "some of quick, slow"),
    ],
)
def test_a_wrong_value_names_the_variable_and_what_it_must_be(name: str, value: str, says: str) -> None:
    with pytest.raises(Invalid, match=says) as caught:
        Settings.from_env({name: value})
    assert caught.value.code == "invalid_setting"
    assert name in caught.value.message


SECRET = "hunter2-of-the-database"


@pytest.mark.parametrize(
    "field",
    [{"database_url": f"postgresql://me:{SECRET}@db/x"}, {"redis_url": f"redis://:{SECRET}@redis:6379/0"}],
)
def test_no_representation_shows_a_password(field: dict[str, str]) -> None:
    settings = Settings.from_env({}, field)
    for text in (repr(settings), str(settings), f"{settings}", repr({"settings": settings})):
        assert SECRET not in text
    assert SECRET in "".join(settings.to_env().values())  # children need it


@pytest.mark.parametrize("name", ["TAGSMITH_DATABASE_URL", "TAGSMITH_REDIS_URL"])
def test_no_error_shows_a_password(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        Settings.from_env({name: f"me:{SECRET}@db"})
    assert name in caught.value.message
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_changed_copy_is_validated(tmp_path: Path) -> None:
    settings = Settings.from_env({}, {"data_dir": tmp_path})
    assert settings.replace(port=1) == Settings(data_dir=tmp_path, port=1)
    with pytest.raises(Invalid, match="a port from 0 to 65535"):
        settings.replace(port=70000)
    with pytest.raises(Invalid, match="no setting 'prot'"):
        settings.replace(prot=1)


def test_only_from_env_reads_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TAGSMITH_PORT", "1")
    assert Settings(data_dir=tmp_path).port == 8765
    assert Settings.from_env().port == 1
