"""Tagging: from the bytes of a request to the bytes of its response."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson

from tagsmith.app.http.memory import RequestMemory
from tagsmith.app.tagging import answers, parsing
from tagsmith.app.tagging.answers import Amount
from tagsmith.app.tagging.serving import Served, Serving
from tagsmith.app.tagging.turns import Turns
from tagsmith.core.base.errors import Invalid, Unavailable
from tagsmith.core.base.regex import limited
from tagsmith.core.service.settings import Settings
from tagsmith.wire import TagRequest

T = TypeVar("T")
#: Up to this size, tagging on the event loop takes less time than switching to a thread and back (about 0.3 ms).
INLINE_TOKENS = 512
#: Parsing a body of this size takes 0.1 ms.
INLINE_BYTES = 16 * 1024
#: Steps of regular expressions on the event loop: at most 20 ms.
INLINE_STEPS = 1_000_000
#: Transitions between labels on the event loop, likewise.
INLINE_TRANSITIONS = 20_000_000
#: Tokens that are tagged and written at once. Reading strings and writing JSON hold the GIL: some 5 ms for so many.
PART_TOKENS = 1 << 16
#: Maximum number of requests that wait for a thread. They are seconds of work, so further requests are rejected.
MAX_WAITING = 256


@dataclasses.dataclass(frozen=True, slots=True)
class Tagged:
    """The JSON of a response, the model that produced it, and the amount of tagged input."""

    served: Served
    body: bytes
    amount: Amount


@dataclasses.dataclass(frozen=True, slots=True)
class Tagging:
    """The tagging service of an API process."""

    serving: Serving
    settings: Settings
    threads: anyio.CapacityLimiter
    #: Until the kernels are compiled, tagging runs in threads only: compilation would block the event loop for seconds.
    warmed: Callable[[], bool]
    turns: Turns
    memory: RequestMemory

    async def answer(self, raw: bytes) -> Tagged:
        """Tag the input of a request."""
        if len(raw) <= INLINE_BYTES:
            await self.turns.take()
            found = parsing.plain(raw)
            quick = None if found is None else self._quick(*found, len(raw))
            if quick is not None:
                return quick
            request = parsing.parse(raw, found)
            self._check(request)
            served = self.serving.held(request.model) or await self.serving.resolve(request.model)
            tokens = _tokens(request)
            short = tokens <= INLINE_TOKENS and _is_quick(served, tokens, len(raw))
            if self.warmed() and not request.beyond and short:
                return tag(served, request)
            return await self.threaded(lambda: tag(served, request))
        async with self.memory.held(raw):
            request, tagged = await self.threaded(lambda: self._read_and_tag(raw))
            if tagged is not None:
                return tagged
            served = await self.serving.resolve(request.model)
            return await self.threaded(lambda: tag(served, request))

    def _quick(self, model: str, sentences: list[list[Any]], size_bytes: int) -> Tagged | None:
        """Tag the most common kind of request at once: few sentences, tags only, a model that is already open.

        Return None for any other request, which then takes the general path.
        """
        if not self.warmed():
            return None
        served, limits = self.serving.held(model), self.settings
        tokens = sum(map(len, sentences))
        if tokens > min(INLINE_TOKENS, limits.max_tag_tokens) or len(sentences) > limits.max_tag_sentences:
            return None
        if served is None or not _is_quick(served, tokens, size_bytes):
            return None
        return _tagged(served, sentences, tokens)

    def _read_and_tag(self, raw: bytes) -> tuple[TagRequest, Tagged | None]:
        """Parse and tag a large request in a single thread call. Do not tag if its model has to be opened first."""
        request = parsing.read(raw, self.settings.max_tag_sentences)
        self._check(request)
        held = self.serving.held(request.model)
        if held is None:
            return request, None
        tagged = tag(held, request)
        parsing.free(request.sentences)
        return request, tagged

    def _check(self, request: TagRequest) -> None:
        limits = self.settings
        place = "/sentences" if request.text is None else "/text"
        lines = sum(1 + text.count("\n") for text in request.texts)
        sentences = len(request.sentences) + lines
        if sentences > limits.max_tag_sentences:
            units = "sentences" if request.text is None else "lines"
            raise parsing.too_many(f"{sentences} {units}", limits.max_tag_sentences, place)
        tokens = _tokens(request)
        if tokens > limits.max_tag_tokens:
            units = "tokens" if request.text is None else "characters"
            raise parsing.too_many(f"{tokens} {units}", limits.max_tag_tokens, place)

    async def threaded(self, work: Callable[[], T]) -> T:
        """Run `work` in a tagging thread. Raise Unavailable if too many requests wait for a thread."""
        if self.threads.statistics().tasks_waiting >= MAX_WAITING:
            raise Unavailable("Too many requests wait for tagging.", code="overloaded")
        return await anyio.to_thread.run_sync(work, limiter=self.threads)


def _tokens(request: TagRequest) -> int:
    """Return the number of tokens. Each character of a text counts as one."""
    return sum(map(len, request.sentences)) + sum(map(len, request.texts))


def _is_quick(served: Served, tokens: int, size_bytes: int) -> bool:
    """Whether a model computes its columns and decodes a body of this size in little time."""
    tagger = served.tagger
    return (
        tagger.steps_per_character * size_bytes <= INLINE_STEPS
        and tagger.transitions_per_token * tokens <= INLINE_TRANSITIONS
    )


@limited()
def tag(served: Served, request: TagRequest) -> Tagged:
    """Tag a request and serialise the response."""
    if request.plain and request.output == "tags":
        return _tagged(served, request.sentences, _tokens(request))
    answer = answers.answer(served, request)
    return Tagged(served, orjson.dumps(answer.told, option=orjson.OPT_SERIALIZE_NUMPY), answer.amount)


def _tagged(served: Served, sentences: Sequence[Sequence[Any]], tokens: int) -> Tagged:
    """Tag sentences and serialise the response."""
    target, tagger = served.target, served.tagger
    answers.check_scratch(tagger, max(map(len, sentences), default=0))
    head = orjson.dumps({"model": target.model, "version": target.version, "tags": []})
    try:
        tags = b",".join(orjson.dumps(tagger.tag(part))[1:-1] for part in _parts(sentences, tokens))
    except Invalid:
        tagger.code(sentences)  # raises again, with places in the whole request
        raise
    return Tagged(served, head[:-2] + tags + head[-2:], Amount(len(sentences), tokens))


def _parts(sentences: Sequence[Sequence[Any]], tokens: int) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the sentences in parts of about `PART_TOKENS` tokens."""
    if tokens <= PART_TOKENS:
        yield sentences
        return
    first = size = 0
    for i, sentence in enumerate(sentences, start=1):
        size += len(sentence)
        if size >= PART_TOKENS or i == len(sentences):
            yield sentences[first:i]
            first, size = i, 0
