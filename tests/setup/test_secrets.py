"""Passwords and keys of settings: no log, message or representation has them, whatever fails."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tagsmith.app.main import create_app
from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.service import messages
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tagsmith.worker.celery_app import create_celery
from tests.app.servers import ROOT
from tests.services import RedisServer, free_port, wait_until

#: Also percent-encoded in the URL, and decoded by the drivers.
SECRET, ENCODED = "hunter2/hunter2", "hunter2%2Fhunter2"
SHOWN = "hunter2"
DEADLINE_S = 90.0


def unreachable(tmp_path: Path) -> dict[str, str]:
    """Settings with passwords for servers that are not there."""
    return {
        "TAGSMITH_DATA_DIR": str(tmp_path / "data"),
        "TAGSMITH_DATABASE_URL": f"postgresql://someone:{ENCODED}@127.0.0.1:{free_port()}/tagsmith",
        "TAGSMITH_REDIS_URL": f"redis://someone:{ENCODED}@127.0.0.1:{free_port()}/0",
        "TAGSMITH_LOG_LEVEL": "debug",
        "TAGSMITH_PORT": str(free_port()),
    }


def environment(settings: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAGSMITH_")}
    return {**kept, **settings, "TAGSMITH_KEY": f"key_01hzy3_{SHOWN}", "COLUMNS": "200"}


@pytest.mark.parametrize(
    "command",
    [("doctor",), ("migrate",), ("keys", "list"), ("jobs",), ("backup", "b.tar"), ("up",), ("corpora",)],
    ids=" ".join,
)
def test_no_command_prints_a_password(command: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tagsmith.cli", *command],
        cwd=tmp_path,
        env=environment(unreachable(tmp_path)) | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode != 0
    assert SHOWN not in done.stdout + done.stderr + logs_in(tmp_path)


def logs_in(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*.log"))


@contextmanager
def running(
    module: tuple[str, ...], settings: dict[str, str], log_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *module], cwd=ROOT, env=environment(settings), stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_no_log_of_a_worker_has_a_password(sqlite_url: str, tmp_path: Path) -> None:
    settings = unreachable(tmp_path)
    for number, away in enumerate((settings, settings | {"TAGSMITH_DATABASE_URL": sqlite_url})):
        log_path = tmp_path / f"{number}.log"
        said = "waiting for the database" if number == 0 else "Cannot connect to"
        with running(("tagsmith.worker",), away, log_path):
            wait_until(lambda path=log_path, said=said: said in path.read_text(), said, DEADLINE_S)
    assert SHOWN not in logs_in(tmp_path)


def test_no_log_or_response_of_an_api_process_has_a_password(own_redis: RedisServer, tmp_path: Path) -> None:
    settings = unreachable(tmp_path) | {
        "TAGSMITH_ACCESS": "anyone-without-keys",
        # This Redis knows no such user.
        "TAGSMITH_REDIS_URL": own_redis.url.replace("unix://", f"unix://someone:{ENCODED}@"),
    }
    url = f"http://127.0.0.1:{settings['TAGSMITH_PORT']}"
    with running(("tagsmith.cli", "api"), settings, tmp_path / "api.log"):
        wait_until(lambda: answers(url), "the API to answer", DEADLINE_S)
        paths = ("/readyz", "/corpora", "/metrics", "/version", "/jobs")
        texts = [httpx.get(f"{url}{path}", timeout=60).text for path in paths]
        texts.append(httpx.post(f"{url}/lexicons", content=b"Rome\n", timeout=60).text)
    assert "Redis does not respond" in texts[0]
    assert "database does not respond" in texts[0]
    assert SHOWN not in "".join(texts) + logs_in(tmp_path)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/livez", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def test_no_representation_of_what_settings_make_has_a_password(tmp_path: Path) -> None:
    given = unreachable(tmp_path)
    settings = Settings.from_env(given)
    database = Database(settings.database_url)
    assert settings.redis_url is not None
    app, celery, redis = create_app(settings), create_celery(settings), messages.connect(settings.redis_url)
    made = (settings, database, database.url, app, celery, celery.conf, redis, redis.connection_pool)
    for each in made:
        assert SHOWN not in repr(each) + str(each), type(each)
    with pytest.raises(TagsmithError) as caught, database.read():
        raise AssertionError("reached")
    error: BaseException | None = caught.value
    while error is not None:
        assert SHOWN not in repr(error) + str(error), type(error)
        error = error.__cause__ or error.__context__
    database.dispose()
