"""The client that blocks until the server has responded."""

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx
from httpx_sse import connect_sse
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


def _called(make: Callable[P, Call[T]]) -> Callable[Concatenate["Client", P], T]:
    """A method that makes a call and returns what it reads."""

    @functools.wraps(make)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(make(*args, **kwargs))

    return method


def _paged(make: Callable[P, Pages[T]]) -> Callable[Concatenate["Client", P], Iterator[T]]:
    """A method that iterates over a list, fetching pages on the way."""

    @functools.wraps(make)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.iterate(make(*args, **kwargs))

    return method


def _listed(make: Callable[P, Pages[T]]) -> Callable[Concatenate["Client", P], list[T]]:
    """A method that returns a whole list."""

    @functools.wraps(make)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        return list(self.iterate(make(*args, **kwargs)))

    return method


class Client:
    """Calls a Tagsmith server. Use it as a context manager, or close it.

    The methods are defined in `tagsmith.client.calls`; each corresponds to one operation of the API.
    """

    def __init__(
        self, base_url: str | None = None, *, key: str | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._http = httpx.Client(**http_arguments(base_url, key, timeout_s))

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
        """Make a call."""
        response = self._http.request(**call.arguments(call.upload and call.upload.blocks()))
        raise_for_problem(response)
        return call.read(response)

    def iterate(self, pages: Pages[T]) -> Iterator[T]:
        """Iterate over the items of a list, fetching a page when it is needed."""
        cursor: str | None = None
        while True:
            page = self.send(pages.page(cursor))
            yield from page.data
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

    def model(self, name: str) -> "ServedModel":
        """Get one model, which can then tag."""
        return ServedModel.bind(self, self.send(model_calls.model(name)))

    def tag_lines(self, model: str, lines: Iterable[Line], **options: Any) -> Iterator[TaggedLine]:
        """Tag any number of lines (texts, sentences, or objects with an `id`) in order, all by one version.

        A line that cannot be tagged gives a result with an `error`. `options` are fields of the request.
        """
        stream = LineStream(model, options)
        for call in stream.calls(lines):
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
            except httpx.TransportError as error:
                followed.lost(error)
            if followed.done:
                return
            time.sleep(following.RETRY_S)

    def wait(self, job_id: str) -> Job:
        """Wait until a job has ended, and return it."""
        for _ in self.follow(job_id):
            pass
        return self.job(job_id)

    def ready(self) -> bool:
        """Whether the server can be reached and is ready to serve."""
        try:
            self.readiness()
        except (httpx.TransportError, ApiError):
            return False
        return True


class ServedModel(ModelInfo):
    """A model of a server, ready to tag."""

    _client: Client = PrivateAttr()

    @classmethod
    def bind(cls, client: Client, info: ModelInfo) -> Self:
        """Let a model tag with a client."""
        bound = cls.model_validate(info.model_dump())
        bound._client = client  # noqa: SLF001  # its own
        return bound

    def tag_text(
        self, text: str, *, version: int | None = None, tokenizer: TokenizerName | None = None
    ) -> TaggedText:
        """Tag a text with a version, by default the champion, else the newest; see `Client.tag_text`."""
        return self._client.tag_text(_reference(self.name, version), text, tokenizer=tokenizer)


def _reference(name: str, version: int | None) -> str:
    return name if version is None else f"{name}:{version}"
