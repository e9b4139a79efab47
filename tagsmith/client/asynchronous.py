"""The client for asyncio and trio."""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import httpx
from httpx_sse import aconnect_sse
from pydantic import PrivateAttr

from tagsmith.client import following
from tagsmith.client.call import Call, Pages
from tagsmith.client.calls import aliases as alias_calls
from tagsmith.client.calls import corpora as corpus_calls
from tagsmith.client.calls import jobs as job_calls
from tagsmith.client.calls import models as model_calls
from tagsmith.client.calls import service as service_calls
from tagsmith.client.calls import tagging as tagging_calls
from tagsmith.client.errors import ApiError, raise_for_problem
from tagsmith.client.following import Following
from tagsmith.client.lines import Line, LineStream
from tagsmith.client.options import TIMEOUT_S, http_arguments
from tagsmith.client.text import TaggedText
from tagsmith.wire import Job, JobEvent, JobProgress, ModelInfo, TaggedLine, TokenizerName

P = ParamSpec("P")
T = TypeVar("T")


def _called(make: Callable[P, Call[T]]) -> Callable[Concatenate["AsyncClient", P], Awaitable[T]]:
    """A method that makes a call and returns what it reads."""

    @functools.wraps(make)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(make(*args, **kwargs))

    return method


def _paged(make: Callable[P, Pages[T]]) -> Callable[Concatenate["AsyncClient", P], AsyncIterator[T]]:
    """A method that iterates over a list, fetching pages on the way."""

    @functools.wraps(make)
    def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self.iterate(make(*args, **kwargs))

    return method


def _listed(make: Callable[P, Pages[T]]) -> Callable[Concatenate["AsyncClient", P], Awaitable[list[T]]]:
    """A method that returns a whole list."""

    @functools.wraps(make)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        return [item async for item in self.iterate(make(*args, **kwargs))]

    return method


class AsyncClient:
    """Calls a Tagsmith server without blocking. Use it as an asynchronous context manager, or close it.

    It has the methods of `Client`: those that return a value are awaited, those that iterate are used with `async for`.
    """

    def __init__(
        self, base_url: str | None = None, *, key: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._http = httpx.AsyncClient(**http_arguments(base_url, key, timeout_s))

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
        """Make a call."""
        response = await self._http.request(**call.arguments(call.upload and call.upload.async_blocks()))
        raise_for_problem(response)
        return call.read(response)

    async def iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Iterate over the items of a list, fetching a page when it is needed."""
        cursor: str | None = None
        while True:
            page = await self.send(pages.page(cursor))
            for item in page.data:
                yield item
            if (cursor := page.next_cursor) is None:
                return

    # Corpora, lexicons and features
    upload = _called(corpus_calls.upload)
    corpora = _paged(corpus_calls.corpora)
    corpus = _called(corpus_calls.corpus)
    inspect = _called(corpus_calls.inspect)
    sentences = _paged(corpus_calls.sentences)
    report = _called(corpus_calls.report)
    content = _called(corpus_calls.content)
    delete_corpus = _called(corpus_calls.delete_corpus)
    upload_lexicon = _called(corpus_calls.upload_lexicon)
    lexicons = _paged(corpus_calls.lexicons)
    lexicon = _called(corpus_calls.lexicon)
    lexicon_content = _called(corpus_calls.lexicon_content)
    delete_lexicon = _called(corpus_calls.delete_lexicon)
    preview = _called(corpus_calls.preview)
    trainers = _listed(corpus_calls.trainers)
    presets = _listed(corpus_calls.presets)

    # Jobs
    submit = _called(job_calls.submit)
    validate = _called(job_calls.validate)
    train = _called(job_calls.train)
    compare = _called(job_calls.compare)
    tune = _called(job_calls.tune)
    evaluate = _called(job_calls.evaluate)
    tag_corpus = _called(job_calls.tag_corpus)
    output = _called(job_calls.output)
    table = _called(job_calls.table)
    plot = _called(job_calls.plot)
    jobs = _paged(job_calls.jobs)
    job = _called(job_calls.job)
    cancel = _called(job_calls.cancel)
    pause = _called(job_calls.pause)
    resume = _called(job_calls.resume)
    retry = _called(job_calls.retry)
    delete_job = _called(job_calls.delete_job)
    events = _listed(job_calls.events)

    # Models
    models = _paged(model_calls.models)
    versions = _paged(model_calls.versions)
    version = _called(model_calls.version)
    artifact = _called(model_calls.artifact)
    import_model = _called(model_calls.import_model)
    templates = _listed(model_calls.templates)
    template_selection = _called(model_calls.template_selection)
    template_plot = _called(model_calls.template_plot)
    features = _paged(model_calls.features)
    transitions = _paged(model_calls.transitions)
    weights = _called(model_calls.weights)
    compare_versions = _called(model_calls.compare_versions)
    delete_version = _called(model_calls.delete_version)
    delete_model = _called(model_calls.delete_model)

    # Aliases and policies
    aliases = _listed(alias_calls.aliases)
    alias = _called(alias_calls.alias)
    promote = _called(alias_calls.promote)
    rollback = _called(alias_calls.rollback)
    history = _listed(alias_calls.history)
    policy = _called(alias_calls.policy)
    set_policy = _called(alias_calls.set_policy)
    delete_policy = _called(alias_calls.delete_policy)
    retention = _called(alias_calls.retention)

    # Tagging
    tag = _called(tagging_calls.tag)
    tag_text = _called(tagging_calls.tag_text)

    # Keys, audit log and server
    create_key = _called(service_calls.create_key)
    keys = _paged(service_calls.keys)
    key = _called(service_calls.key)
    revoke_key = _called(service_calls.revoke_key)
    audit = _paged(service_calls.audit)
    liveness = _called(service_calls.liveness)
    readiness = _called(service_calls.readiness)
    server_version = _called(service_calls.server_version)
    metrics = _called(service_calls.metrics)

    async def model(self, name: str) -> "AsyncServedModel":
        """Get one model, which can then tag."""
        return AsyncServedModel.bind(self, await self.send(model_calls.model(name)))

    async def tag_lines(self, model: str, lines: Iterable[Line], **options: Any) -> AsyncIterator[TaggedLine]:
        """Tag any number of lines; see `Client.tag_lines`."""
        stream = LineStream(model, options)
        for call in stream.calls(lines):
            for line in stream.take(await self.send(call)):
                yield line

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
            except httpx.TransportError as error:
                followed.lost(error)
            if followed.done:
                return
            await anyio.sleep(following.RETRY_S)

    async def wait(self, job_id: str) -> Job:
        """Wait until a job has ended, and return it."""
        async for _ in self.follow(job_id):
            pass
        return await self.job(job_id)

    async def ready(self) -> bool:
        """Whether the server can be reached and is ready to serve."""
        try:
            await self.readiness()
        except (httpx.TransportError, ApiError):
            return False
        return True


class AsyncServedModel(ModelInfo):
    """A model of a server, ready to tag without blocking."""

    _client: AsyncClient = PrivateAttr()

    @classmethod
    def bind(cls, client: AsyncClient, info: ModelInfo) -> Self:
        """Let a model tag with a client."""
        bound = cls.model_validate(info.model_dump())
        bound._client = client  # noqa: SLF001  # its own
        return bound

    async def tag_text(
        self, text: str, *, version: int | None = None, tokenizer: TokenizerName | None = None
    ) -> TaggedText:
        """Tag a text with a version, by default the champion, else the newest; see `Client.tag_text`."""
        reference = self.name if version is None else f"{self.name}:{version}"
        return await self._client.tag_text(reference, text, tokenizer=tokenizer)
