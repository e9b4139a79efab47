"""The memory of JSON bodies is limited over all requests of a process."""

import asyncio
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tagsmith.app.http.memory import VALUE_BYTES, RequestMemory, count_values
from tagsmith.app.http.middleware.body_limit import BodyLimiter
from tagsmith.app.http.policy import BodyLimit, RoutePolicy
from tagsmith.core.base.errors import TooLarge, Unavailable
from tagsmith.core.service.settings import Settings
from tagsmith.core.store.keys import Scope

MIB = 1 << 20
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("text", "values"), [(b"1", 0), (b"[1, 2]", 2), (b'{"a": [], "b": {}}', 4), (b'["a,b"]', 2)]
)
def test_values_are_counted_without_parsing(text: bytes, values: int) -> None:
    assert count_values(text) == values


async def test_memory_is_held_while_a_body_is_processed() -> None:
    memory = RequestMemory(8 * VALUE_BYTES)
    async with memory.held(b"[1,2,3,4,5]"):
        with pytest.raises(Unavailable):
            async with memory.held(b"[1,2,3,4,5]"):
                pass
        async with memory.held(b"[1,2]"):
            pass
    async with memory.held(b"[1,2,3,4,5]"):
        pass


async def test_a_body_that_never_fits_is_too_large() -> None:
    with pytest.raises(TooLarge):
        async with RequestMemory(4 * VALUE_BYTES).held(b"[1,2,3,4,5]"):
            pass


async def _bodies(count: int, size: int, memory: RequestMemory) -> list[int]:
    """Send bodies at once; each ends when all have arrived. Return the statuses."""
    arrived, refused = 0, 0
    everyone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal arrived
        while (await receive())["more_body"]:
            pass
        arrived += 1
        await everyone.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def one() -> int:
        pieces = [{"type": "http.request", "body": b"x" * size, "more_body": more} for more in (True, False)]
        statuses: list[int] = []

        async def receive() -> Any:
            return pieces.pop(0)

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        policy = RoutePolicy(Scope.TAG, body=BodyLimit.TAGGING)
        scope = {
            "type": "http",
            "headers": [(b"content-type", b"application/json")],
            "app": SimpleNamespace(state=SimpleNamespace(runtime=SimpleNamespace(memory=memory))),
            "state": {"policy": policy},
        }
        nonlocal refused
        try:
            await BodyLimiter(app, settings=Settings())(scope, receive, send)
        except Unavailable:
            refused += 1
            return 503
        return statuses[0]

    tasks = [asyncio.create_task(one()) for _ in range(count)]
    while arrived + refused < count:  # noqa: ASYNC110  # the limiter has no event to wait for
        await asyncio.sleep(0)
    everyone.set()
    return sorted(await asyncio.gather(*tasks))


async def test_bodies_that_arrive_at_once_have_a_limit_together_and_release_it() -> None:
    memory = RequestMemory(4 * MIB)
    for _ in range(2):
        statuses = await asyncio.wait_for(_bodies(5, MIB // 2, memory), 30)
        assert statuses == [200, 200, 200, 200, 503]


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage collection during the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/tag", "sentences", 413),
        ("/tag", "unknown", 422),
        ("/jobs", "kind", 422),
        ("/features/preview", "sentence", 422),
    ],
)
def test_the_body_of_a_refused_request_is_freed_at_once(
    http: httpx.Client, path: str, key: str, status: int
) -> None:
    body = {"model": "none", key: [["a", "b"]] * 20_000}
    assert http.post(path, json=body).status_code == status
    body.clear()
    assert gc.collect() < 5_000
