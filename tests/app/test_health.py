"""Health: alive, ready, degraded, and why."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tagsmith.app import main
from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.service.settings import Settings
from tagsmith.core.service.version import code_version
from tagsmith.core.store import migrate
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ThreadServer, assert_problem
from tests.services import Databases, RedisServer, wait_until


def test_a_server_with_all_its_parts_is_ready(server: ThreadServer, http: httpx.Client) -> None:
    server.ready()
    response = http.get("/readyz")
    assert response.status_code == 200
    ready = response.json()
    assert (ready["status"], ready["reasons"]) == ("ready", [])
    assert {name: check["ok"] for name, check in ready["checks"].items()} == {
        "database": True,
        "migrations": True,
        "redis": True,
        "kernels": True,
    }


def test_a_live_server_says_so_and_which_code_it_runs(http: httpx.Client) -> None:
    assert http.get("/livez").json() == {"status": "ok"}
    version = http.get("/version").json()
    assert (version["name"], version["code_version"]) == ("tagsmith", code_version())


def test_without_redis_it_is_degraded_but_ready_and_says_what_still_works(
    sqlite_url: str, own_redis: RedisServer, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path, database_url=sqlite_url, redis_url=own_redis.url)
    with ThreadServer(settings) as server:
        server.ready()
        own_redis.stop()
        response = httpx.get(f"{server.url}/readyz")
        assert response.status_code == 200
        assert response.json()["status"] == "degraded"
        assert response.json()["checks"]["redis"] == {
            "ok": False,
            "fatal": False,
            "detail": "Redis does not respond: tagging and stored data work without it; "
            "jobs start later, and live events are polled",
        }
        own_redis.start()
        wait_until(
            lambda: httpx.get(f"{server.url}/readyz").json()["status"] == "ready", "Redis to be seen again"
        )


def test_before_the_migrations_it_is_not_ready(empty_database_url: str, tmp_path: Path) -> None:
    from tagsmith.core.store import migrate

    settings = Settings(data_dir=tmp_path, database_url=empty_database_url)
    with ThreadServer(settings) as server:
        problem = assert_problem(httpx.get(f"{server.url}/readyz"), 503, "not_ready", parameter="migrations")
        assert problem["checks"]["migrations"]["ok"] is False
        assert any("run the migrations" in reason for reason in problem["reasons"])
        migrate.upgrade(empty_database_url)
        server.ready()


def test_a_database_that_is_away_makes_it_unready_and_requests_503(tmp_path: Path) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    with ThreadServer(Settings(data_dir=tmp_path, database_url=nowhere)) as server:
        response = httpx.get(f"{server.url}/readyz", timeout=10)
        assert_problem(response, 503, "not_ready", parameter="database", reason="does not respond")
        response = httpx.get(f"{server.url}/corpora", timeout=10)
        assert_problem(response, 503, "database_unavailable")
        assert response.headers["retry-after"] == "1"
        assert "nobody" not in response.text
        assert httpx.get(f"{server.url}/livez").status_code == 200


def test_while_the_database_is_away_open_models_keep_it_ready_for_tagging(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    url = postgres_databases.create(migrate.upgrade)
    database = Database(url)
    with database.write() as conn:
        models.publish(conn, "chunker", samples.NEW, [samples.model_file("v1", tmp_path / "file")])
    database.dispose()
    with ThreadServer(Settings(data_dir=tmp_path / "data", database_url=url)) as server:
        server.ready()
        with Client(server.url, retries=0) as client:
            sentence = [["Rockwell", "NNP"], ["said", "VBD"]]
            client.tag("chunker", [sentence])
            postgres_databases.drop(url)
            response = httpx.get(f"{server.url}/readyz", timeout=10)
            assert (response.status_code, response.json()["status"]) == (200, "degraded")
            assert any("open models keep tagging" in reason for reason in response.json()["reasons"])
            assert client.tag("chunker", [sentence]).version == 1


@pytest.fixture
def slow_warm(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    done = threading.Event()

    def warm() -> float:
        done.wait()
        return 0.0

    monkeypatch.setattr(main.warm, "serving", warm)
    yield done
    done.set()


def test_until_the_kernels_are_compiled_it_lives_but_is_not_ready(
    sqlite_url: str, tmp_path: Path, slow_warm: threading.Event
) -> None:
    with ThreadServer(Settings(data_dir=tmp_path, database_url=sqlite_url)) as server:
        response = httpx.get(f"{server.url}/readyz")
        assert_problem(response, 503, "not_ready", parameter="kernels", reason="being compiled")
        assert httpx.get(f"{server.url}/livez").status_code == 200
        slow_warm.set()
        server.ready()


def test_kernels_that_fail_to_compile_are_said_to_have_failed(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warm() -> float:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(main.warm, "serving", warm)
    with ThreadServer(Settings(data_dir=tmp_path, database_url=sqlite_url)) as server:
        wait_until(lambda: "failed" in httpx.get(f"{server.url}/readyz").text, "the failure to be said")
        assert httpx.get(f"{server.url}/readyz").status_code == 503
