"""Several API processes, moving aliases, and requests under way."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tagsmith.client import Client
from tagsmith.core.registry import models
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.engine import Database
from tests.app import samples
from tests.app.servers import ProcessServer, ThreadServer
from tests.services import RedisServer, wait_until

SENTENCE = [["Rockwell", "NNP"], ["said", "VBD"]]
FOLLOW_S = 2.0


@pytest.fixture(scope="module")
def two_versions(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with two versions that answer with different labels; its name."""
    folder = tmp_path_factory.mktemp("models")
    database = Database(database_url)
    for mark in ("v1", "v2"):
        with database.write() as conn:
            models.publish(conn, "chunker", samples.NEW, [samples.model_file(mark, folder / mark)])
    database.dispose()
    return "chunker"


@contextlib.contextmanager
def processes(settings: Settings, count: int, folder: Path) -> Iterator[list[Client]]:
    with contextlib.ExitStack() as stack:
        servers = [ProcessServer(settings, folder / f"{i}.log") for i in range(count)]
        for server in servers:
            stack.callback(server.process.kill)
        yield [stack.enter_context(Client(stack.enter_context(server).url, retries=0)) for server in servers]


@pytest.mark.parametrize("with_redis", [True, False])
def test_an_alias_move_is_served_at_once_here_and_within_two_seconds_elsewhere(
    database_url: str, redis_url: str, two_versions: str, tmp_path: Path, with_redis: bool
) -> None:
    url = redis_url if with_redis else None
    settings = Settings(data_dir=tmp_path, database_url=database_url, redis_url=url)
    with processes(settings, 2, tmp_path) as (here, there):

        def follows(version: int) -> None:
            assert here.tag(two_versions, [SENTENCE]).version == version
            wait_until(lambda: there.tag(two_versions, [SENTENCE]).version == version, "the other", FOLLOW_S)

        for version in (1, 2, 1, 2):
            here.promote(two_versions, version)
            follows(version)
        here.rollback(two_versions)
        follows(1)


def test_no_answer_mixes_versions_while_an_alias_moves(
    database_url: str, redis_url: str, two_versions: str, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database_url, redis_url=redis_url)
    stop = threading.Event()
    seen: set[int] = set()
    faults: list[object] = []

    def ask(url: str, sentences: int) -> None:
        with httpx.Client(base_url=url) as http:
            while not stop.is_set():
                response = http.post("/tag", json={"model": "chunker", "sentences": [SENTENCE] * sentences})
                if response.status_code != 200:
                    faults.append(response.text)
                    return
                answer = response.json()
                mark = f"v{answer['version']}"
                if answer["tags"] != [[f"name-{mark}", f"act-{mark}"]] * sentences:
                    faults.append(answer)
                seen.add(answer["version"])

    with ThreadServer(settings) as server, Client(server.url, retries=0) as client:
        client.promote(two_versions, 1)
        # Small requests are tagged on the loop, large ones in threads.
        threads = [threading.Thread(target=ask, args=(server.url, size)) for size in (1, 1, 500, 500)]
        for thread in threads:
            thread.start()
        for move in range(30):
            client.promote(two_versions, 1 + move % 2)
            assert client.tag(two_versions, [SENTENCE]).version == 1 + move % 2
        stop.set()
        for thread in threads:
            thread.join(60)
    assert faults == []
    assert seen == {1, 2}


def test_tagging_goes_on_while_redis_is_away(
    database_url: str, two_versions: str, own_redis: RedisServer, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database_url, redis_url=own_redis.url)
    with ThreadServer(settings) as server, Client(server.url, retries=0) as client:
        client.promote(two_versions, 1)
        assert client.tag(two_versions, [SENTENCE]).version == 1
        own_redis.kill()
        for _ in range(20):
            assert client.tag(two_versions, [SENTENCE]).version == 1
        client.promote(two_versions, 2)
        assert client.tag(two_versions, [SENTENCE]).version == 2


def test_an_alias_moves_as_fast_however_many_references_were_used_before(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    file = samples.model_file("v1", tmp_path / "file")
    with database.write() as conn:
        for i in range(30):
            # Distinct files: each is a model of its own in the cache.
            models.publish(conn, f"many-{i}", samples.NEW, [samples.model_file(f"m{i}", tmp_path / f"m{i}")])
        models.publish(conn, "many-0", samples.NEW, [samples.model_file("second", tmp_path / "second")])
    database.dispose()
    room = 3 * len(file)
    settings = Settings(data_dir=tmp_path / "data", database_url=database_url, model_cache_bytes=room)
    with ThreadServer(settings) as server, Client(server.url, retries=0) as client:
        for i in reversed(range(30)):
            client.tag(f"many-{i}", [SENTENCE])
        cache = server.app.state.runtime.tagging.serving._cache
        before = cache.usage.misses
        client.promote("many-0", 1)
        assert client.tag("many-0", [SENTENCE]).version == 1
        # One model is opened for the alias that moved, and none for the others.
        assert cache.usage.misses - before == 1
        assert client.tag("many-29", [SENTENCE]).version == 1


def test_a_moved_alias_whose_model_cannot_be_opened_keeps_the_old_one(
    database_url: str, two_versions: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    with database.write() as conn:
        broken = models.publish(conn, two_versions, samples.NEW, [b"no model file at all"]).version
    database.dispose()
    settings = Settings(data_dir=tmp_path, database_url=database_url)
    with ThreadServer(settings) as server, Client(server.url, retries=0) as client:
        client.promote(two_versions, 2)
        assert client.tag(two_versions, [SENTENCE]).version == 2
        client.promote(two_versions, broken)
        assert client.tag(two_versions, [SENTENCE]).version == 2
        client.promote(two_versions, 1)
        assert client.tag(two_versions, [SENTENCE]).version == 1
        client.delete_version(two_versions, broken)
