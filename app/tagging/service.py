"""Tagging: from the bytes of a request to the bytes of its response."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson

from tagsmith.app.http.memory import RequestMemory
from tagsmith.app.tagging import chains, parsing, trees
from tagsmith.app.tagging.answers import Amount, Answer, check_scratch, parts_of
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
#: Pairs of words that a parser scores on the event loop, likewise.
INLINE_PAIRS = 20_000
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
            short = tokens <= INLINE_TOKENS and _is_quick(served, tokens, _pairs(request), len(raw))
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
        if served is None or _parses(served) or not _is_quick(served, tokens, 0, size_bytes):
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


def _pairs(request: TagRequest) -> int:
    """Return the most pairs of words of one sentence. A text has a blank between two words."""
    return sum(len(each) ** 2 for each in request.sentences) + sum(
        (len(text) // 2 + 1) ** 2 for text in request.texts
    )


def _is_quick(served: Served, tokens: int, pairs: int, size_bytes: int) -> bool:
    """Whether a model computes its columns and decodes a body of this size in little time."""
    tagger = served.tagger
    if tagger.steps_per_character * size_bytes > INLINE_STEPS:
        return False
    return (
        pairs <= INLINE_PAIRS
        if _parses(served)
        else tagger.transitions_per_token * tokens <= INLINE_TRANSITIONS
    )


@limited()
def tag(served: Served, request: TagRequest) -> Tagged:
    """Tag a request and serialise the response."""
    if request.plain and request.output == "tags" and not _parses(served):
        return _tagged(served, request.sentences, _tokens(request))
    answered = answer(served, request)
    return Tagged(served, orjson.dumps(answered.told, option=orjson.OPT_SERIALIZE_NUMPY), answered.amount)


def answer(served: Served, request: TagRequest) -> Answer:
    """Tag or parse the input of a request."""
    return trees.answer(served, request) if _parses(served) else chains.answer(served, request)


def _parses(served: Served) -> bool:
    return served.tagger.is_parser


def _tagged(served: Served, sentences: Sequence[Sequence[Any]], tokens: int) -> Tagged:
    """Tag sentences and serialise the response."""
    target, tagger = served.target, served.tagger
    check_scratch(tagger, max(map(len, sentences), default=0))
    head = orjson.dumps({"model": target.model, "version": target.version, "tags": []})
    try:
        tags = b",".join(orjson.dumps(tagger.tag(part))[1:-1] for part in parts_of(sentences))
    except Invalid:
        tagger.code(sentences)  # raises again, with places in the whole request
        raise
    return Tagged(served, head[:-2] + tags + head[-2:], Amount(len(sentences), tokens))
