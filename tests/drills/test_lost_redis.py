"""Redis goes away: nothing is lost, tagging does not notice."""

from collections.abc import Iterator

import pytest

from tagsmith.app.cli.background import BackgroundStack
from tagsmith.client import Client
from tagsmith.core.service.settings import Settings
from tests.drills import actions
from tests.services import RedisServer, wait_until


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def wired(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundStack]:
    """A stack on a Redis that the tests can take away."""
    overrides = {"port": 0, "data_dir": tmp_path_factory.mktemp("data"), "reaper_seconds": 0.5}
    with BackgroundStack(Settings.from_env({}, {**overrides, "redis_url": redis_server.url})) as stack:
        yield stack


def test_without_redis_tagging_goes_on_aliases_move_and_jobs_wait_for_its_return(
    wired: BackgroundStack, redis_server: RedisServer
) -> None:
    with Client(wired.url, retries=0) as client:
        actions.train(client)
        corpus_id = next(iter(client.corpora())).id
        second = client.train(actions.spec(corpus_id) | {"promote": None})
        assert client.wait(second.id).state == "succeeded"

        redis_server.kill()
        actions.tag(client, 50)

        client.promote(actions.MODEL, 2, reason="drill")
        wait_until(lambda: _version(client) == 2, "version 2 to answer")

        job = client.train(actions.spec(corpus_id))
        assert client.job(job.id).state == "queued"
        actions.tag(client, 10)

        redis_server.start()
        assert client.wait(job.id).state == "succeeded"
        assert [version.version for version in client.versions(actions.MODEL)] == [3, 2, 1]


def _version(client: Client) -> int:
    return client.tag(actions.MODEL, [[["Smith", "CAP"]]]).version
