"""The client that blocks until the server has responded."""

import time
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from httpx_sse import connect_sse

from tagsmith.client import following
from tagsmith.client.call import Call, Pages
from tagsmith.client.calls import models as model_calls
from tagsmith.client.errors import ApiError, ServerAway, raise_for_problem
from tagsmith.client.files import part_file
from tagsmith.client.following import Following
from tagsmith.client.handles import JobHandle, ServedModel
from tagsmith.client.lines import Line, LineStream
from tagsmith.client.operations import Operations
from tagsmith.client.options import TIMEOUT_S, http_arguments
from tagsmith.client.retrying import RETRIES, Retries
from tagsmith.client.transport import Blocking
from tagsmith.wire import JobEvent, JobProgress, TaggedLine

T = TypeVar("T")


class Client(Operations, Blocking):
    """Calls a Tagsmith server. Use it as a context manager, or close it. Threads may share it.

    `base_url` and `key` default to `TAGSMITH_URL` and `TAGSMITH_KEY` in the environment. `timeout_s` limits each
    response. A call is repeated up to `retries` times when the server cannot be reached or is busy; calls that create
    something carry an idempotency key, so that they are carried out once.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        self._http = httpx.Client(**http_arguments(base_url, key, timeout_s))
        self._retries = retries

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, call: Call[T]) -> T:
        """Make a call, and return what it reads."""

        def attempt() -> T:
            response = self._http.request(**call.arguments(call.upload and call.upload.blocks()))
            raise_for_problem(response, call.hints)
            return call.read(response)

        return self._repeated(call, attempt)

    def save(self, call: Call[Any], to: str | PathLike[str]) -> Path:
        """Write the response to a file while it arrives, and return its path. A failure leaves no part of a file."""

        def attempt() -> Path:
            with self._http.stream(**call.arguments()) as response:
                if response.is_error:
                    response.read()
                raise_for_problem(response)
                with part_file(to) as file:
                    for block in response.iter_bytes():
                        file.write(block)
            return Path(to)

        return self._repeated(call, attempt)

    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Iterate over the items of a list, fetching a page when it is needed."""
        cursor: str | None = None
        while True:
            page = self.send(pages.page(cursor))
            yield from page.data
            if (cursor := page.next_cursor) is None:
                return

    def model(self, name: str) -> ServedModel:
        """Get one model, which can then tag."""
        return ServedModel.bind(self, self.send(model_calls.model(name)))

    def tag_lines(self, model: str, lines: Iterable[Line], **options: Any) -> Iterator[TaggedLine]:
        """Tag any number of lines (texts, sentences, or objects with an `id`) in order, all by one version.

        A line that cannot be tagged gives a result with an `error`. `options` are fields of the request.
        """
        stream = LineStream(model, options)
        for line in lines:
            if (call := stream.add(line)) is not None:
                yield from stream.take(self.send(call))
        if (call := stream.rest()) is not None:
            yield from stream.take(self.send(call))

    def follow(self, job_id: str, *, after: int = 0) -> Iterator[JobEvent | JobProgress]:
        """Yield each event once, in order, as it happens; return when the job has ended.

        A lost connection is resumed where it broke.
        """
        followed = Following(job_id, after)
        while True:
            try:
                with connect_sse(self._http, **followed.arguments()) as source:
                    if source.response.is_error:
                        source.response.read()
                    raise_for_problem(source.response)
                    if followed.opened(source.response):
                        for message in source.iter_sse():
                            if (event := followed.take(message)) is not None:
                                yield event
                            if followed.done:
                                return
            except (httpx.TransportError, ApiError) as error:
                followed.lost(error)
            if followed.done:
                return
            time.sleep(following.RETRY_S)

    def wait(self, job_id: str, *, check: bool = True) -> JobHandle:
        """Wait until a job has ended, and return it. With `check`, raise JobFailed if it failed or was cancelled."""
        return self.job(job_id).wait(check=check)

    def ready(self) -> bool:
        """Whether the server can be reached and is ready to serve."""
        try:
            self.readiness()
        except (httpx.TransportError, ApiError):
            return False
        return True

    def _repeated(self, call: Call[Any], attempt: Callable[[], T]) -> T:
        """Make attempts until one succeeds or fails for good."""
        retries = Retries(call, self._retries)
        while True:
            try:
                return attempt()
            except (httpx.TransportError, ApiError) as error:
                if (delay_s := retries.delay_s(error)) is None:
                    if isinstance(error, httpx.ConnectError):
                        raise ServerAway.of(error) from error
                    raise
            time.sleep(delay_s)
