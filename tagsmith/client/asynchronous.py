"""The client for asyncio and trio."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.to_thread
import httpx
from httpx_sse import aconnect_sse

from tagsmith.client import following
from tagsmith.client.call import Call, Pages
from tagsmith.client.calls import models as model_calls
from tagsmith.client.errors import ApiError, ServerAway, raise_for_problem
from tagsmith.client.files import part_file
from tagsmith.client.following import Following
from tagsmith.client.handles import AsyncJobHandle, AsyncServedModel
from tagsmith.client.lines import Line, LineStream
from tagsmith.client.operations import Operations
from tagsmith.client.options import TIMEOUT_S, http_arguments
from tagsmith.client.retrying import RETRIES, Retries
from tagsmith.client.transport import Awaiting
from tagsmith.wire import JobEvent, JobProgress, TaggedLine

T = TypeVar("T")


class AsyncClient(Operations, Awaiting):
    """Calls a Tagsmith server without blocking. Use it as an asynchronous context manager, or close it.

    It has the arguments and methods of `Client`: those that return a value are awaited, those that iterate are used
    with `async for`.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        self._http = httpx.AsyncClient(**http_arguments(base_url, key, timeout_s))
        self._retries = retries

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, call: Call[T]) -> T:
        """Make a call, and return what it reads."""

        async def attempt() -> T:
            body = call.upload and call.upload.async_blocks()
            response = await self._http.request(**call.arguments(body))
            raise_for_problem(response, call.hints)
            return call.read(response)

        return await self._repeated(call, attempt)

    async def save(self, call: Call[Any], to: str | PathLike[str]) -> Path:
        """Write the response to a file while it arrives, and return its path. A failure leaves no part of a file."""

        async def attempt() -> Path:
            async with self._http.stream(**call.arguments()) as response:
                if response.is_error:
                    await response.aread()
                raise_for_problem(response)
                with part_file(to) as file:
                    async for block in response.aiter_bytes():
                        await anyio.to_thread.run_sync(file.write, block)
            return Path(to)

        return await self._repeated(call, attempt)

    async def iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Iterate over the items of a list, fetching a page when it is needed."""
        cursor: str | None = None
        while True:
            page = await self.send(pages.page(cursor))
            for item in page.data:
                yield item
            if (cursor := page.next_cursor) is None:
                return

    async def model(self, name: str) -> AsyncServedModel:
        """Get one model, which can then tag."""
        info = await self.send(model_calls.model(name))
        return AsyncServedModel.bind(self, info)

    async def tag_lines(
        self, model: str, lines: Iterable[Line] | AsyncIterable[Line], **options: Any
    ) -> AsyncIterator[TaggedLine]:
        """Tag any number of lines, which may come from an asynchronous iterator; see `Client.tag_lines`."""
        stream = LineStream(model, options)
        async for line in _asynchronous(lines):
            if (call := stream.add(line)) is not None:
                for tagged in stream.take(await self.send(call)):
                    yield tagged
        if (call := stream.rest()) is not None:
            for tagged in stream.take(await self.send(call)):
                yield tagged

    async def follow(self, job_id: str, *, after: int = 0) -> AsyncIterator[JobEvent | JobProgress]:
        """Yield each event once, in order, as it happens; see `Client.follow`."""
        followed = Following(job_id, after)
        while True:
            try:
                async with aconnect_sse(self._http, **followed.arguments()) as source:
                    if source.response.is_error:
                        await source.response.aread()
                    raise_for_problem(source.response)
                    if followed.opened(source.response):
                        async for message in source.aiter_sse():
                            if (event := followed.take(message)) is not None:
                                yield event
                            if followed.done:
                                return
            except (httpx.TransportError, ApiError) as error:
                followed.lost(error)
            if followed.done:
                return
            await anyio.sleep(following.RETRY_S)

    async def wait(self, job_id: str, *, check: bool = True) -> AsyncJobHandle:
        """Wait until a job has ended, and return it; see `Client.wait`."""
        job = await self.job(job_id)
        return await job.wait(check=check)

    async def ready(self) -> bool:
        """Whether the server can be reached and is ready to serve."""
        try:
            await self.readiness()
        except (httpx.TransportError, ApiError):
            return False
        return True

    async def _repeated(self, call: Call[Any], attempt: Callable[[], Awaitable[T]]) -> T:
        """Make attempts until one succeeds or fails for good."""
        retries = Retries(call, self._retries)
        while True:
            try:
                return await attempt()
            except (httpx.TransportError, ApiError) as error:
                if (delay_s := retries.delay_s(error)) is None:
                    if isinstance(error, httpx.ConnectError):
                        raise ServerAway.of(error) from error
                    raise
            await anyio.sleep(delay_s)


async def _asynchronous(lines: Iterable[Line] | AsyncIterable[Line]) -> AsyncIterator[Line]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line
