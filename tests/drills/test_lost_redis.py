"""Redis goes away: nothing is lost, tagging does not notice."""

import time
from collections.abc import Callable

from app.cli.background import BackgroundStack
from app.client import Client
from tests.drills import actions
from tests.services import RedisServer, wait_until

StartStack = Callable[..., BackgroundStack]


def test_without_redis_tagging_goes_on_aliases_move_and_jobs_wait_for_its_return(
    start_stack: StartStack, own_redis: RedisServer
) -> None:
    stack = start_stack(redis_url=own_redis.url, reaper_seconds=0.5)
    with Client(stack.url) as client:
        actions.train(client)
        corpus_id = next(iter(client.corpora())).id
        second = client.train(actions.spec(corpus_id) | {"promote": None})
        assert client.wait(second.id).state == "succeeded"

        own_redis.kill()
        assert actions.tags_for(client, 2.0) > 20

        began = time.monotonic()
        client.promote(actions.MODEL, 2, reason="drill")
        wait_until(lambda: _version(client) == 2, "version 2 to answer", 5)
        assert time.monotonic() - began < 4

        job = client.train(actions.spec(corpus_id))
        assert client.job(job.id).state == "queued"
        assert actions.tags_for(client, 0.5) > 5

        own_redis.start()
        assert client.wait(job.id).state == "succeeded"
        assert [version.version for version in client.versions(actions.MODEL)] == [3, 2, 1]


def test_redis_lost_in_mid_job_does_not_stop_the_training(
    start_stack: StartStack, own_redis: RedisServer
) -> None:
    stack = start_stack(redis_url=own_redis.url)
    with Client(stack.url) as client:
        job_id = actions.start_long_job(client)
        own_redis.kill()
        job = client.wait(job_id)
        assert (job.state, job.attempt) == ("succeeded", 1)
        passes = [event.data["pass"] for event in client.events(job_id) if event.type == "pass"]
        assert passes == list(range(1, actions.LONG_PASSES + 1))


def test_the_supervisor_brings_its_own_redis_back(start_stack: StartStack) -> None:
    import os
    import signal

    stack = start_stack(reaper_seconds=0.5)
    with Client(stack.url) as client:
        first = actions.child_pid(stack, "redis")
        os.kill(first, signal.SIGKILL)
        assert actions.train(client).state == "succeeded"
        assert actions.child_pid(stack, "redis") != first


def _version(client: Client) -> int:
    return client.tag(actions.MODEL, [[["Smith", "CAP"]]]).version
