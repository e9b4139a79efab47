"""Tagging: from the bytes of a request to the bytes of its response."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson
import pydantic_core
from pydantic import ValidationError

from tagsmith.app.http import bodies, problems
from tagsmith.app.http.memory import RequestMemory
from tagsmith.app.tagging import answers
from tagsmith.app.tagging.answers import Amount
from tagsmith.app.tagging.serving import Served, Serving
from tagsmith.app.tagging.turns import Turns
from tagsmith.core.base.errors import Fault, FaultType, Invalid, TooLarge, Unavailable
from tagsmith.core.base.spec import faults_of
from tagsmith.core.corpus.attributes import count_members
from tagsmith.core.corpus.formats.ndjson import members_of
from tagsmith.core.service.settings import Settings
from tagsmith.wire import TagRequest
from tagsmith.wire.names import MAX_REFERENCE

T = TypeVar("T")
#: The model and the sentences of a request that has no other fields.
Plain = tuple[str, list[list[Any]]]

#: Up to this size, tagging on the event loop takes less time than switching to a thread and back (about 0.3 ms).
INLINE_TOKENS = 512
#: Parsing a body of this size takes 0.1 ms.
INLINE_BYTES = 16 * 1024
#: Maximum number of requests that wait for a thread. They are seconds of work, so further requests are rejected.
MAX_WAITING = 256
#: The fields of the most common request.
_PLAIN = {"model", "sentences"}
_NO_TOKENS = "`sentences` is a list, and each sentence is a list of tokens. Send raw text as `text`."


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
            found = plain(raw)
            quick = None if found is None else self._quick(*found)
            if quick is not None:
                return quick
            request = self._read(raw, found)
            served = self.serving.held(request.model) or await self.serving.resolve(request.model)
            if self.warmed() and not request.beyond and _tokens(request) <= INLINE_TOKENS:
                return tag(served, request)
            return await self.threaded(lambda: tag(served, request))
        async with self.memory.held(raw):
            request, tagged = await self.threaded(lambda: self._read_and_tag(raw))
            if tagged is not None:
                return tagged
            served = await self.serving.resolve(request.model)
            return await self.threaded(lambda: tag(served, request))

    def _quick(self, model: str, sentences: list[list[Any]]) -> Tagged | None:
        """Tag the most common kind of request at once: few sentences, tags only, a model that is already open.

        Return None for any other request, which then takes the general path.
        """
        if not self.warmed():
            return None
        served, limits = self.serving.held(model), self.settings
        tokens = sum(map(len, sentences))
        if tokens > min(INLINE_TOKENS, limits.max_tag_tokens) or len(sentences) > limits.max_tag_sentences:
            return None
        return None if served is None else _tagged(served, sentences, tokens)

    def _read_and_tag(self, raw: bytes) -> tuple[TagRequest, Tagged | None]:
        """Parse and tag a large request in a single thread call. Do not tag if its model has to be opened first."""
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
            units = "sentences" if request.text is None else "lines"
            raise _too_many(f"{sentences} {units}", limits.max_tag_sentences, place)
        tokens = _tokens(request)
        if tokens > limits.max_tag_tokens:
            units = "tokens" if request.text is None else "characters"
            raise _too_many(f"{tokens} {units}", limits.max_tag_tokens, place)

    async def threaded(self, work: Callable[[], T]) -> T:
        """Run `work` in a tagging thread. Raise Unavailable if too many requests wait for a thread."""
        if self.threads.statistics().tasks_waiting >= MAX_WAITING:
            raise Unavailable("Too many requests wait for tagging.", code="overloaded")
        return await anyio.to_thread.run_sync(work, limiter=self.threads)


def plain(raw: bytes) -> Plain | None:
    """Return the model and the sentences of a request that has only these fields, and tokens made of strings.

    Return None for any other request and for any fault: full validation handles these. For plain requests this check
    takes a fifth of the time of full validation.
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
    """Parse a request. Raise an error with the places of its faults. `found` is the result of `plain`."""
    if found is not None:
        return TagRequest.model_construct(_PLAIN, model=found[0], sentences=found[1])
    try:
        request = TagRequest.model_validate_json(raw)
    except ValidationError as error:
        request = _with_whole_numbers(raw, error)
    if ("sentences" in request.model_fields_set) == (request.text is not None):
        fault = Fault(
            "give sentences or a text",
            pointer="/sentences" if request.text is None else "/text",
            type="missing" if request.text is None else FaultType.INCONSISTENT,
        )
        raise Invalid("The request is not valid.", [fault], code="invalid_request")
    if check_tokens(request.sentences) is dict:
        check_once(raw, request)
    return request


def _with_whole_numbers(raw: bytes, refused: ValidationError) -> TagRequest:
    """Parse a rejected request again, with whole floats such as 2.0 as integers. Raise if that fails too."""
    if any(item["type"] == "int_type" for item in refused.errors(include_url=False, include_context=False)):
        with contextlib.suppress(ValidationError):
            given = bodies.whole(pydantic_core.from_json(raw))
            return TagRequest.model_validate_json(pydantic_core.to_json(given))
    raise _invalid(refused, raw) from None


def kind_of(sentences: Sequence[Sequence[Any]]) -> type | None:
    """Return the type of all tokens: strings, lists of strings, or objects. Return None for anything else.

    The loop runs at C speed. The contents of objects are checked later, when their attributes are looked up.
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
    """Return the type of all tokens. Raise Invalid with the places of the faults."""
    kind = kind_of(sentences)
    if kind is not None:
        return kind
    faults = list(islice(_wrong_tokens(sentences), problems.MAX_FAULTS))
    reason = "Tokens are strings, or all of them lists of strings, or all of them objects."
    raise Invalid(reason, faults, code="invalid_request")


def check_once(raw: bytes, request: TagRequest) -> None:
    """Raise Invalid if an object has a duplicate name. JSON parsers silently keep only the last value."""
    limits = 0 if request.constraints is None else len(request.constraints.model_fields_set)
    if count_members(raw) == len(request.model_fields_set) + limits + sum(map(members_of, request.sentences)):
        return
    bodies.refuse_repeated_names(raw, "/sentences")


def _wrong_tokens(sentences: Sequence[Sequence[Any]]) -> Iterator[Fault]:
    """Yield the faults in order. All tokens must have the type of the first one."""
    first = next(chain.from_iterable(sentences))
    for i, sentence in enumerate(sentences):
        for j, token in enumerate(sentence):
            place = f"/sentences/{i}/{j}"
            if not isinstance(token, (str, list, dict)):
                reason = "A token is a string, a list of strings or an object."
                yield Fault(reason, pointer=place, type="string_type")
            elif isinstance(first, (str, list, dict)) and type(token) is not type(first):
                reason = "This token has another type than the first. Use one type for all."
                yield Fault(reason, pointer=place, type=FaultType.MIXED_TYPES)
            elif isinstance(token, list):
                for k, column in enumerate(token):
                    if not isinstance(column, str):
                        yield Fault(
                            "A column of a token is a string.", pointer=f"{place}/{k}", type="string_type"
                        )


def _tokens(request: TagRequest) -> int:
    """Return the number of tokens. Each character of a text counts as one."""
    return sum(map(len, request.sentences)) + sum(map(len, request.texts))


def tag(served: Served, request: TagRequest) -> Tagged:
    """Tag a request and serialise the response."""
    if request.plain and request.output == "tags":
        return _tagged(served, request.sentences, _tokens(request))
    answer = answers.answer(served, request)
    return Tagged(served, orjson.dumps(answer.told, option=orjson.OPT_SERIALIZE_NUMPY), answer.amount)


def _tagged(served: Served, sentences: Sequence[Sequence[Any]], tokens: int) -> Tagged:
    """Tag sentences and serialise the response."""
    target = served.target
    tags = served.tagger.tag(sentences)
    body = orjson.dumps({"model": target.model, "version": target.version, "tags": tags})
    return Tagged(served, body, Amount(len(sentences), tokens))


def _invalid(error: ValidationError, raw: bytes) -> Exception:
    items = error.errors(include_url=False, include_context=True, include_input=False)
    if items[0]["type"] == "json_invalid":
        return bodies.malformed(str(items[0]["ctx"]["error"]))
    faults = faults_of(error, pydantic_core.from_json(raw), TagRequest)[: problems.MAX_FAULTS]
    faults = [dataclasses.replace(each, reason=_NO_TOKENS) if _no_tokens(each) else each for each in faults]
    return Invalid("The request cannot be tagged.", faults, code="invalid_request")


def _no_tokens(fault: Fault) -> bool:
    return fault.type == "list_type" and (fault.pointer or "").startswith("/sentences")


def _too_many(found: str, limit: int, place: str) -> TooLarge:
    reason = (
        f"{found}; a request may have {limit}. Send several requests, or tag a corpus with a job of kind tag."
    )
    return TooLarge("The request is too large.", [Fault(reason, pointer=place)], code="too_many_tokens")
