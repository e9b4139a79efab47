"""Tagging: from the bytes of a request to the bytes of its answer."""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson
import pydantic_core
from pydantic import ValidationError

from app import body as json_body
from app import errors
from app.tagging import answers
from app.tagging.answers import Amount
from app.tagging.schemas import MAX_REFERENCE, TagRequest
from app.tagging.serving import Served, Serving
from app.tagging.turns import Turns
from core.corpus.named import TwiceError, members, once
from core.errors import Fault, Invalid, TooLarge, Unavailable
from core.settings import Settings
from core.specs_base import faults_of

T = TypeVar("T")
#: The model and the sentences of a request that has nothing else.
Plain = tuple[str, list[list[Any]]]

#: Up to here tagging holds the event loop for less than a hop to a thread and back costs, about 0.3 ms.
INLINE_TOKENS = 512
#: A body of this size is read in a tenth of a millisecond.
INLINE_BYTES = 16 * 1024
#: More requests than this waiting for a thread are seconds of work; who comes then is better sent away.
MAX_WAITING = 256
#: The fields of the most common request.
_PLAIN = {"model", "sentences"}


@dataclasses.dataclass(frozen=True, slots=True)
class Tagged:
    """The JSON of an answer, the model that gave it, and how much it tagged."""

    served: Served
    body: bytes
    amount: Amount


@dataclasses.dataclass(frozen=True, slots=True)
class Tagging:
    """What tagging needs of the process it runs in."""

    serving: Serving
    settings: Settings
    threads: anyio.CapacityLimiter
    #: Until the kernels are compiled nothing is tagged on the event loop: it would stand still for seconds.
    warmed: Callable[[], bool]
    turns: Turns

    async def answer(self, raw: bytes) -> Tagged:
        """Tag what a request asks for."""
        if len(raw) <= INLINE_BYTES:
            await self.turns.take()
            found = plain(raw)
            quick = None if found is None else self._quick(*found)
            if quick is not None:
                return quick
            request = self._read(raw, found)
            served = self.serving.held(request.model) or await self.serving.resolve(request.model)
            if self.warmed() and not request.beyond and _tokens(request) <= INLINE_TOKENS:
                return tag(served, request)
            return await self.threaded(lambda: tag(served, request))
        request, tagged = await self.threaded(lambda: self._read_and_tag(raw))
        if tagged is not None:
            return tagged
        served = await self.serving.resolve(request.model)
        return await self.threaded(lambda: tag(served, request))

    def _quick(self, model: str, sentences: list[list[Any]]) -> Tagged | None:
        """Answer the most common of requests at once: a few sentences, nothing but tags, by a model that is open.

        None when it is any other, or too large: then it is taken with more care.
        """
        if not self.warmed():
            return None
        served, limits = self.serving.held(model), self.settings
        tokens = sum(map(len, sentences))
        if tokens > min(INLINE_TOKENS, limits.max_tag_tokens) or len(sentences) > limits.max_tag_sentences:
            return None
        return None if served is None else _tagged(served, sentences, tokens)

    def _read_and_tag(self, raw: bytes) -> tuple[TagRequest, Tagged | None]:
        """Do all of a large request in one hop to a thread, unless its model has to be opened first."""
        request = self._read(raw, plain(raw))
        held = self.serving.held(request.model)
        return request, None if held is None else tag(held, request)

    def _read(self, raw: bytes, found: Plain | None) -> TagRequest:
        request = parse(raw, found)
        self._check(request)
        return request

    def _check(self, request: TagRequest) -> None:
        limits = self.settings
        place = "/sentences" if request.text is None else "/text"
        lines = sum(1 + text.count("\n") for text in request.texts)
        sentences = len(request.sentences) + lines
        if sentences > limits.max_tag_sentences:
            raise _too_many(f"{sentences} sentences; at most {limits.max_tag_sentences} a request", place)
        tokens = _tokens(request)
        if tokens > limits.max_tag_tokens:
            raise _too_many(f"{tokens} tokens; at most {limits.max_tag_tokens} a request", place)

    async def threaded(self, work: Callable[[], T]) -> T:
        """Do work in one of the threads for tagging, unless too many wait for one."""
        if self.threads.statistics().tasks_waiting >= MAX_WAITING:
            raise Unavailable("Too many requests wait for tagging.", code="overloaded")
        return await anyio.to_thread.run_sync(work, limiter=self.threads)


def plain(raw: bytes) -> Plain | None:
    """The model and the sentences of a request that has nothing else, and tokens of strings; None of any other.

    Reading these takes a fifth of the time that it takes to validate them; whatever has a fault is left to that.
    """
    try:
        given = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if type(given) is not dict or given.keys() != _PLAIN:
        return None
    model, sentences = given["model"], given["sentences"]
    sound = type(model) is str and len(model) <= MAX_REFERENCE and type(sentences) is list
    if not sound or not set(map(type, sentences)) <= {list} or kind_of(sentences) not in (str, list):
        return None
    return model, sentences


def parse(raw: bytes, found: Plain | None) -> TagRequest:
    """Read a request, or raise with the places that are wrong. `found` is what `plain` makes of it."""
    if found is not None:
        return TagRequest.model_construct(_PLAIN, model=found[0], sentences=found[1])
    try:
        request = TagRequest.model_validate_json(raw)
    except ValidationError as error:
        request = _with_whole_numbers(raw, error)
    if ("sentences" in request.model_fields_set) == (request.text is not None):
        fault = Fault("give sentences or a text", pointer="/sentences" if request.text is None else "/text")
        raise Invalid("The request is not valid.", [fault], code="invalid_request")
    if check_tokens(request.sentences) is dict:
        check_once(raw, request)
    return request


def _with_whole_numbers(raw: bytes, refused: ValidationError) -> TagRequest:
    """Read a request that was refused once more, with integers such as 2.0 as integers; or raise."""
    if any(item["type"] == "int_type" for item in refused.errors(include_url=False, include_context=False)):
        with contextlib.suppress(ValidationError):
            given = json_body.whole(pydantic_core.from_json(raw))
            return TagRequest.model_validate_json(pydantic_core.to_json(given))
    raise _invalid(refused, raw) from None


def kind_of(sentences: Sequence[Sequence[Any]]) -> type | None:
    """Say whether all tokens are strings, lists of strings, or objects, at C speed; None when it is none of these.

    What stands in objects is checked when their attributes are looked up.
    """
    tokens = set(map(type, chain.from_iterable(sentences)))
    if tokens <= {str}:
        return str
    if tokens == {dict}:
        return dict
    if tokens == {list}:
        columns = chain.from_iterable(chain.from_iterable(sentences))
        if set(map(type, columns)) <= {str}:
            return list
    return None


def check_tokens(sentences: Sequence[Sequence[Any]]) -> type:
    """Give what all tokens are, or raise with the places that are wrong."""
    kind = kind_of(sentences)
    if kind is not None:
        return kind
    faults = [Fault(*found) for found in islice(_wrong_tokens(sentences), errors.MAX_FAULTS)]
    reason = "Tokens are strings, or all of them lists of strings, or all of them objects."
    raise Invalid(reason, faults, code="invalid_request")


def check_once(raw: bytes, request: TagRequest) -> None:
    """Check that no object of the request has a name twice, of which all but the last would be lost unseen."""
    limits = 0 if request.constraints is None else len(request.constraints.model_fields_set)
    if members(raw) == len(request.model_fields_set) + limits + sum(map(_members, request.sentences)):
        return
    try:
        json.loads(raw, object_pairs_hook=once)
    except TwiceError as error:
        fault = Fault(str(error), pointer="/sentences")
        raise Invalid("An object has a name twice.", [fault], code="invalid_request") from None


def _members(value: Any) -> int:
    """Members of all objects in a value."""
    if isinstance(value, dict):
        return len(value) + sum(map(_members, value.values()))
    return sum(map(_members, value)) if isinstance(value, list) else 0


def _wrong_tokens(sentences: Sequence[Sequence[Any]]) -> Iterator[tuple[str, None, str]]:
    """Find what is wrong, in order: (reason, no line, pointer). The first token says which kind all must be."""
    first = next(chain.from_iterable(sentences))
    for i, sentence in enumerate(sentences):
        for j, token in enumerate(sentence):
            place = f"/sentences/{i}/{j}"
            if not isinstance(token, (str, list, dict)):
                yield "must be a string, a list of strings or an object", None, place
            elif isinstance(first, (str, list, dict)) and type(token) is not type(first):
                yield "tokens must be all strings, all lists of strings or all objects", None, place
            elif isinstance(token, list):
                for k, column in enumerate(token):
                    if not isinstance(column, str):
                        yield "must be a string", None, f"{place}/{k}"


def _tokens(request: TagRequest) -> int:
    """Tokens to tag: a character of a text is one."""
    return sum(map(len, request.sentences)) + sum(map(len, request.texts))


def tag(served: Served, request: TagRequest) -> Tagged:
    """Tag, and write the answer."""
    if request.plain and request.output == "tags":
        return _tagged(served, request.sentences, _tokens(request))
    answer = answers.answer(served, request)
    return Tagged(served, orjson.dumps(answer.told, option=orjson.OPT_SERIALIZE_NUMPY), answer.amount)


def _tagged(served: Served, sentences: Sequence[Sequence[Any]], tokens: int) -> Tagged:
    """Tag sentences, and write the answer."""
    target = served.target
    tags = served.tagger.tag(sentences)
    body = orjson.dumps({"model": target.model, "version": target.version, "tags": tags})
    return Tagged(served, body, Amount(len(sentences), tokens))


def _invalid(error: ValidationError, raw: bytes) -> Exception:
    items = error.errors(include_url=False, include_context=True, include_input=False)
    if items[0]["type"] == "json_invalid":
        return json_body.malformed(str(items[0]["ctx"]["error"]))
    faults = faults_of(error, pydantic_core.from_json(raw))[: errors.MAX_FAULTS]
    return Invalid("The request cannot be tagged.", faults, code="invalid_request")


def _too_many(reason: str, place: str) -> TooLarge:
    return TooLarge("The request is too large.", [Fault(reason, pointer=place)], code="too_many_tokens")
