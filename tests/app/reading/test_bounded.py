"""Functions are called in a process of their own, which may run out of memory without harm."""

import os
import signal
import tempfile
from collections.abc import Iterator

import anyio
import psutil
import pytest

from tagsmith.app.reading.bounded import MAX_WAITING, BoundedCalls
from tagsmith.core.base.errors import Invalid, TooLarge, Unavailable
from tests.app.reading import calls
from tests.services import wait_until

MIB = 1 << 20


@pytest.fixture(scope="module")
def bounded() -> Iterator[BoundedCalls]:
    made = BoundedCalls(64 * MIB)
    yield made
    made.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "tagsmith.app.reading.process" in each.cmdline()]


async def test_files_and_values_go_there_and_back(bounded: BoundedCalls) -> None:
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as target:
        source.write(b"text")
        source.flush()
        pid = await bounded.run(calls.copied, [source, target], b" and more")
        target.seek(0)
        assert target.read() == b"text and more"
    assert pid not in (os.getpid(), *(each.pid for each in children()))


async def test_a_call_has_its_memory_and_no_more(bounded: BoundedCalls) -> None:
    assert await bounded.run(calls.takes, [], 32 * MIB) == 32 * MIB
    for function, amount in ((calls.takes, 128 * MIB), (calls.takes_strings, 5_000_000)):
        with pytest.raises(TooLarge, match="more than the 64 MiB of memory allowed") as error:
            await bounded.run(function, [], amount)
        assert error.value.code == "memory_exceeded"
    assert await bounded.run(calls.takes, [], 32 * MIB) == 32 * MIB


async def test_errors_of_users_arrive_with_their_places(bounded: BoundedCalls) -> None:
    with pytest.raises(Invalid, match=r"It is wrong\.") as error:
        await bounded.run(calls.refuses, [])
    assert (error.value.code, error.value.faults[0].line) == ("wrong", 7)


async def test_unexpected_errors_arrive_with_their_trace(bounded: BoundedCalls) -> None:
    with pytest.raises(RuntimeError, match=r"in fails\n[^$]*KeyError: 'unexpected'"):
        await bounded.run(calls.fails, [])


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGKILL, TooLarge),
        (signal.SIGABRT, TooLarge),
        (signal.SIGSEGV, Invalid),
        (signal.SIGXCPU, Invalid),
    ],
)
async def test_a_call_whose_process_is_ended_is_refused_and_the_next_one_works(
    bounded: BoundedCalls, number: int, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await bounded.run(calls.ends_by, [], number)
    assert await bounded.run(calls.takes, [], 1) == 1


async def test_a_process_that_was_killed_starts_again(bounded: BoundedCalls) -> None:
    await bounded.run(calls.takes, [], 1)
    (first,) = children()
    first.kill()
    wait_until(lambda: first.status() == psutil.STATUS_ZOMBIE, "the process to end")
    assert await bounded.run(calls.takes, [], 1) == 1
    (second,) = children()
    assert second.pid != first.pid


async def test_more_calls_than_can_wait_are_refused(bounded: BoundedCalls) -> None:
    refused = []

    async def call() -> None:
        try:
            await bounded.run(calls.takes, [], 1)
        except Unavailable as error:
            refused.append(error.code)

    async with anyio.create_task_group() as group:
        for _ in range(MAX_WAITING + 10):
            group.start_soon(call)
    assert refused == ["overloaded"] * 8


async def test_the_process_ends_with_whoever_started_it() -> None:
    one = BoundedCalls(64 * MIB)
    await one.run(calls.takes, [], 1)
    started = set(children())
    one.close()
    assert set(children()) < started
