"""What one caller may take: requests a second, with and without Redis, and open streams."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from tagsmith.app.http import limits
from tagsmith.app.http.limits import RateLimiter
from tagsmith.app.http.middleware.access_control import rate_limit_key
from tagsmith.app.http.problems import TooMany
from tagsmith.core.jobs import jobs
from tagsmith.core.service.settings import Settings
from tagsmith.core.store import keys
from tagsmith.core.store.engine import Database
from tagsmith.core.store.keys import Scope
from tests.app.keys import Callers
from tests.app.servers import ThreadServer, assert_problem
from tests.services import RedisServer, wait_until


async def taken(limiter: RateLimiter, caller: str, tries: int) -> tuple[int, float]:
    """How many of `tries` requests were let in, and what the first refused one was told to wait."""
    done, wait_s = 0, 0.0
    for _ in range(tries):
        try:
            await limiter.take(caller)
        except TooMany as error:
            wait_s = wait_s or error.retry_after_s
        else:
            done += 1
    return done, wait_s


def test_two_processes_share_one_bucket_and_each_caller_has_its_own(redis_url: str) -> None:
    async def run() -> None:
        settings = Settings(max_requests_per_second=2.0, api_processes=2)
        async with Redis.from_url(redis_url) as redis:
            first, second = RateLimiter(redis, settings), RateLimiter(redis, settings)
            began = time.monotonic()
            done, _ = await taken(first, "key_a", 12)
            more, wait_s = await taken(second, "key_a", 100)
            # Ten seconds of the rate are saved up; more is earned while the test counts.
            assert 20 <= done + more <= 21 + 2 * (time.monotonic() - began)
            assert 0 < wait_s <= 0.5
            assert (await taken(second, "key_b", 5))[0] == 5

    asyncio.run(run())


def test_a_high_rate_asks_redis_once_for_many_requests(redis_url: str) -> None:
    async def run() -> None:
        async with Redis.from_url(redis_url) as redis:
            before = (await redis.info("commandstats")).get("cmdstat_eval", {"calls": 0})["calls"]
            limiter = RateLimiter(redis, Settings(max_requests_per_second=2000.0))
            assert (await taken(limiter, "key_c", 1000))[0] == 1000
            after = (await redis.info("commandstats"))["cmdstat_eval"]["calls"]
            assert after - before <= 12

    asyncio.run(run())


def test_without_redis_each_process_gives_its_share_and_does_not_wait_for_it_again(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        settings = Settings(max_requests_per_second=20.0, api_processes=2)
        async with Redis.from_url(own_redis.url) as redis:
            limiter = RateLimiter(redis, settings)
            assert (await taken(limiter, "key_a", 3))[0] == 3
            own_redis.stop()
            monkeypatch.setattr(limits, "OUTAGE_PAUSE_S", 3600.0)
            asked = 0
            ask = limiter._grant

            async def counting(*arguments: Any) -> Any:
                nonlocal asked
                asked += 1
                return await ask(*arguments)

            monkeypatch.setattr(limiter, "_grant", counting)
            began = time.monotonic()
            done, wait_s = await taken(limiter, "key_a", 200)
            assert 10 <= done <= 12 + 10 * (time.monotonic() - began)
            assert 0 < wait_s <= 0.1
            assert asked == 1
        unconnected = RateLimiter(None, settings)
        assert (await taken(unconnected, "key_a", 200))[0] >= 10

    asyncio.run(run())


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("127.0.0.1", None), ("::1", None), ("192.0.2.7", "address:192.0.2.7"), ("2001:DB8::1", "address:2001:db8::1"),
        ("testclient", "address:testclient"),
    ],
)  # fmt: skip
def test_without_a_key_an_address_is_counted_and_this_machine_is_not(address: str, name: str | None) -> None:
    assert rate_limit_key({"client": (address, 1)}, None) == name


@pytest.fixture(scope="module")
def strict(settings: Settings, database: Database) -> Iterator[ThreadServer]:
    """A server that allows little, where keys are in force."""
    with database.write() as conn:
        keys.create(conn, "first", [Scope.ADMIN])
    limits = {"max_requests_per_second": 1.0, "max_streams": 3, "max_streams_per_caller": 2}
    with ThreadServer(settings.replace(**limits)) as running:
        yield running


@pytest.fixture
def strict_callers(strict: ThreadServer, database: Database) -> Iterator[Callers]:
    made = Callers(database, strict.url)
    yield made
    made.close()


def test_a_key_that_asks_too_much_is_told_when_to_come_back_and_others_are_not(
    strict_callers: Callers,
) -> None:
    greedy, modest = strict_callers.client("read"), strict_callers.client("read")
    answers = [greedy.get("/models") for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 10 <= len(answers) - len(refused) <= 25
    assert_problem(refused[0], 429, "too_many_requests")
    assert refused[0].headers["retry-after"] == "1"
    assert modest.get("/models").status_code == 200
    assert greedy.get("/livez").status_code == 200


def test_open_streams_are_limited_for_a_caller_and_for_the_process(
    strict: ThreadServer, strict_callers: Callers, database: Database
) -> None:
    with database.write() as conn:
        job_id = jobs.create(conn, kind="train", spec={}).id
    first, second = strict_callers.client("read"), strict_callers.client("read")
    events, accept = f"/jobs/{job_id}/events", {"Accept": "text/event-stream"}

    def opened(client: httpx.Client) -> httpx.Response:
        return client.send(client.build_request("GET", events, headers=accept), stream=True)

    streams = [opened(first), opened(first)]
    assert [each.status_code for each in streams] == [200, 200]
    refused = first.get(events, headers=accept)
    assert_problem(refused, 429, "too_many_streams")
    assert int(refused.headers["retry-after"]) >= 1
    assert first.get(events).status_code == 200  # a list is no stream
    streams.append(opened(second))
    assert streams[-1].status_code == 200
    assert_problem(second.get(events, headers=accept), 429, "too_many_streams")
    for each in streams:
        each.close()
    count = lambda: strict.app.state.runtime.streams.count  # noqa: E731
    wait_until(lambda: count() == 0, "the streams to end")


def test_uploads_that_do_not_end_keep_only_their_own_caller_waiting(
    strict: ThreadServer, strict_callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 3
    monkeypatch.setattr(strict.app.state.runtime.open_uploads, "_most_each", most)
    first, second = strict_callers.client("train"), strict_callers.client("train")
    host, port = strict.url.removeprefix("http://").split(":")
    head = (
        f"POST /corpora/inspect?format=conll HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 1000\r\n"
        f"Authorization: {first.headers['authorization']}\r\n\r\nx"
    )
    count = lambda: strict.app.state.runtime.open_uploads.count  # noqa: E731
    with contextlib.ExitStack() as stack:
        for _ in range(most):
            connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
            connection.sendall(head.encode())
        wait_until(lambda: count() == most, "the uploads to begin")
        refused = first.post("/corpora/inspect", content=b"Ada B-PER\n")
        assert_problem(refused, 429, "too_many_uploads")
        assert int(refused.headers["retry-after"]) >= 1
        assert second.post("/corpora/inspect", content=b"Ada B-PER\n").status_code == 200
    wait_until(lambda: count() == 0, "the uploads to end")
