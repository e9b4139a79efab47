"""Jobs and models that know their client: what the server returned, with methods."""

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from typing import Any, Generic, Self, TextIO, TypeVar

from pydantic import PrivateAttr

from tagsmith.client.call import Call
from tagsmith.client.calls import jobs as job_calls
from tagsmith.client.calls import tagging as tagging_calls
from tagsmith.client.calls.corpora import Sentence
from tagsmith.client.errors import JobFailed
from tagsmith.client.text import ParsedSentences, TaggedText
from tagsmith.client.transport import Awaiting, Blocking
from tagsmith.client.watching import ProgressDisplay
from tagsmith.wire import Job, JobEvent, JobProgress, ModelInfo, TokenizerName
from tagsmith.wire.base import WireResponse

ClientT = TypeVar("ClientT", Blocking, Awaiting)

#: Calls to make one after another, each with the result of the one before; returns the call whose result is the job.
Plan = Generator[Call[Any], Any, Call[Job]]


def handle_of(client: Blocking, plan: Call[Job] | Plan) -> "JobHandle":
    """Carry out a plan, and return a handle of its job."""
    call, last = _step(plan)
    while not last:
        call, last = _step(plan, client.send(call))
    return JobHandle.bind(client, client.send(call))


async def async_handle_of(client: Awaiting, plan: Call[Job] | Plan) -> "AsyncJobHandle":
    """Carry out a plan, and return a handle of its job."""
    call, last = _step(plan)
    while not last:
        call, last = _step(plan, await client.send(call))
    return AsyncJobHandle.bind(client, await client.send(call))


def _step(plan: Call[Job] | Plan, result: Any = None) -> tuple[Call[Any], bool]:
    """Return the next call of a plan, given the result of the one before, and whether it is the last."""
    if isinstance(plan, Call):
        return plan, True
    try:
        return plan.send(result), False
    except StopIteration as end:
        return end.value, True


class _Bound(WireResponse, Generic[ClientT]):
    """A response that knows its client."""

    _client: ClientT = PrivateAttr()

    @classmethod
    def bind(cls, client: ClientT, response: WireResponse) -> Self:
        """Let a response use a client."""
        bound = cls.model_validate(response.model_dump())
        bound._client = client  # noqa: SLF001  # its own
        return bound


class _BoundJob(Job):
    """What both handles have. The fields are those of the job when it was last read."""

    @property
    def reference(self) -> str | None:
        """The version that the job trained, such as `ner:3`; None if there is none."""
        result = self.result or {}
        return f"{result['model']}:{result['version']}" if {"model", "version"} <= result.keys() else None

    def __repr__(self) -> str:
        return f"<{self.kind} job {self.id}{f' of {self.model}' if self.model else ''}: {self.state}>"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        """Handles are equal to jobs with the same fields, whoever holds them."""
        return isinstance(other, Job) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]  # as other jobs

    def _take(self, job: Job, *, check: bool = False) -> Self:
        for name in Job.model_fields:
            setattr(self, name, getattr(job, name))
        if check and self.done and self.state != "succeeded":
            raise JobFailed(self)
        return self


class JobHandle(_Bound[Blocking], _BoundJob):
    """A job of a server, which can be watched, waited for and cancelled."""

    def refresh(self) -> Self:
        """Read the job again."""
        return self._take(self._client.send(job_calls.job(self.id)))

    def follow(self, *, after: int = 0) -> Iterator[JobEvent | JobProgress]:
        """Yield the events of the job; see `Client.follow`."""
        return self._client.follow(self.id, after=after)

    def wait(self, *, check: bool = True) -> Self:
        """Wait until the job has ended. With `check`, raise JobFailed if it failed or was cancelled."""
        for _ in self.follow():
            pass
        return self._take(self.refresh(), check=check)

    def watch(self, *, check: bool = True, out: TextIO | None = None) -> Self:
        """Wait as `wait` does, and show progress: a live line in a terminal or notebook, else a line per pass.

        `out` is where to write, by default the standard output.
        """
        with ProgressDisplay(self, out) as watch:
            for event in self.follow():
                watch.show(event)
            watch.end(self.refresh())
        return self._take(self, check=check)

    def cancel(self) -> Self:
        """Request that the job stop."""
        return self._take(self._client.send(job_calls.cancel(self.id)))


class AsyncJobHandle(_Bound[Awaiting], _BoundJob):
    """A job of a server, as `JobHandle`, with methods that are awaited."""

    async def refresh(self) -> Self:
        """Read the job again."""
        return self._take(await self._client.send(job_calls.job(self.id)))

    def follow(self, *, after: int = 0) -> AsyncIterator[JobEvent | JobProgress]:
        """Yield the events of the job; see `Client.follow`."""
        return self._client.follow(self.id, after=after)

    async def wait(self, *, check: bool = True) -> Self:
        """Wait until the job has ended; see `JobHandle.wait`."""
        async for _ in self.follow():
            pass
        return self._take(await self.refresh(), check=check)

    async def watch(self, *, check: bool = True, out: TextIO | None = None) -> Self:
        """Wait and show progress; see `JobHandle.watch`."""
        with ProgressDisplay(self, out) as watch:
            async for event in self.follow():
                watch.show(event)
            watch.end(await self.refresh())
        return self._take(self, check=check)

    async def cancel(self) -> Self:
        """Request that the job stop."""
        return self._take(await self._client.send(job_calls.cancel(self.id)))


class ServedModel(_Bound[Blocking], ModelInfo):
    """A model of a server, ready to tag."""

    def tag_text(
        self, text: str, *, version: int | None = None, tokenizer: TokenizerName | None = None
    ) -> TaggedText:
        """Tag a text with a version, by default the champion, else the newest; see `Client.tag_text`."""
        return self._client.send(
            tagging_calls.tag_text(_reference(self.name, version), text, tokenizer=tokenizer)
        )

    def parse(
        self,
        sentences: Sequence[Sentence] | None = None,
        *,
        text: str | Sequence[str] | None = None,
        version: int | None = None,
        marginals: bool = False,
    ) -> ParsedSentences:
        """Find dependency trees with a version, by default the champion, else the newest; see `Client.parse`."""
        reference = _reference(self.name, version)
        return self._client.send(tagging_calls.parse(reference, sentences, text=text, marginals=marginals))


class AsyncServedModel(_Bound[Awaiting], ModelInfo):
    """A model of a server, ready to tag without blocking."""

    async def tag_text(
        self, text: str, *, version: int | None = None, tokenizer: TokenizerName | None = None
    ) -> TaggedText:
        """Tag a text with a version; see `ServedModel.tag_text`."""
        return await self._client.send(
            tagging_calls.tag_text(_reference(self.name, version), text, tokenizer=tokenizer)
        )

    async def parse(
        self,
        sentences: Sequence[Sentence] | None = None,
        *,
        text: str | Sequence[str] | None = None,
        version: int | None = None,
        marginals: bool = False,
    ) -> ParsedSentences:
        """Find dependency trees with a version; see `ServedModel.parse`."""
        reference = _reference(self.name, version)
        return await self._client.send(
            tagging_calls.parse(reference, sentences, text=text, marginals=marginals)
        )


def _reference(name: str, version: int | None) -> str:
    return name if version is None else f"{name}:{version}"
