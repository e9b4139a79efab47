"""Tagging a stream: a line in, a line out, in order, by one version, with no more than some lines in memory.

The first line says what is asked for, as the body of a plain request does, without sentences; its answer is the model
and the version. Every further line is a sentence or a text, answered as soon as it has come. A line with a fault is
answered by an error, and the next goes on.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect

from app import errors
from app.body import parse_json
from app.tagging import answers, service
from app.tagging.answers import Amount
from app.tagging.schemas import LineOptions, TagLine, TagRequest
from app.tagging.serving import Served
from core.corpus.named import TwiceError, once
from core.errors import Fault, Invalid, TagsmithError, TooLarge
from core.specs_base import validated

MEDIA_TYPE = "application/x-ndjson"

#: What an answer has of all sentences, and how the answer of a line calls its own.
_NAMES = {"probabilities": "probability"}
#: Said once, in the answer to the first line.
_ONCE = ("model", "version", "labels")


_OPTIONS: TypeAdapter[LineOptions] = TypeAdapter(LineOptions)
_LINE: TypeAdapter[TagLine] = TypeAdapter(TagLine)


#: The answers to some lines, and how much was tagged for them.
Batch = tuple[bytes, Amount]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one line may hold."""

    line_bytes: int
    tokens: int


def options_of(line: bytes) -> LineOptions:
    """Read the first line."""
    options = validated(_OPTIONS, parse_json(line), "The first line")
    if options.constraints is not None and options.constraints.tags is not None:
        fault = Fault("tags cannot be fixed for all lines alike", pointer="/constraints/tags")
        raise Invalid("The first line is not valid", [fault], code="invalid_spec")
    return options


def request_of(options: LineOptions, **given: Any) -> TagRequest:
    """The plain request that asks the same of sentences or texts that were checked."""
    # A tokenizer has no meaning for lines of tokens, and may be given for those of text among them.
    tokenizer = options.tokenizer if "text" in given else None
    named = {name: getattr(options, name) for name in LineOptions.model_fields}
    return TagRequest.model_construct(**{**named, "tokenizer": tokenizer}, **given)


async def split(chunks: AsyncIterator[bytes], line_bytes: int) -> AsyncIterator[list[bytes]]:
    """The lines that each chunk of a body ends. Blank ones are left out."""
    pending = b""
    async for chunk in chunks:
        *whole, pending = (pending + chunk).split(b"\n")
        if len(pending) > line_bytes or any(len(line) > line_bytes for line in whole):
            raise TooLarge(f"A line is longer than the {line_bytes} bytes allowed.", code="line_too_long")
        lines = [line for line in whole if line.strip()]
        if lines:
            yield lines
    if pending.strip():
        yield [pending]


@dataclass(frozen=True, slots=True)
class Lines:
    """One stream under way."""

    served: Served
    options: LineOptions
    limits: Limits

    async def answers(
        self,
        batches: AsyncIterator[list[bytes]],
        first: Sequence[bytes],
        threaded: Callable[[Callable[[], Batch]], Awaitable[Batch]],
        count: Callable[[Amount], None],
    ) -> AsyncIterator[bytes]:
        """The answers to the lines that came with the first, and to all that follow; `count` is told how much."""
        target = self.served.target
        head: dict[str, Any] = {"model": target.model, "version": target.version}
        if self.options.distributions:
            head["labels"] = self.served.tagger.labels
        yield orjson.dumps(head) + b"\n"
        number = 2

        async def answered(lines: Sequence[bytes], at: int) -> bytes:
            body, amount = await threaded(lambda: self.batch(lines, at))
            count(amount)
            return body

        try:
            if first:
                yield await answered(first, number)
                number += len(first)
            async for lines in batches:
                yield await answered(lines, number)
                number += len(lines)
        except ClientDisconnect:
            return
        except TagsmithError as error:  # the answer has begun: what stops it can only be told in it
            yield orjson.dumps({"line": number, "error": _told(error)}) + b"\n"

    def batch(self, lines: Sequence[bytes], first: int) -> Batch:
        """The answers to some lines, the first of which has that number in the body, from 1, blank ones left out."""
        parsed: list[TagLine | TagsmithError] = [self._parsed(line) for line in lines]
        found: dict[int, dict[str, Any]] = {}
        amount = Amount()
        for text in (False, True):
            places = [
                i
                for i, line in enumerate(parsed)
                if isinstance(line, TagLine) and (line.text is not None) == text
            ]
            answered, of_these = self._tagged(places, [parsed[i] for i in places])
            found |= answered
            amount += of_these
        out = []
        for i, line in enumerate(parsed):
            answer: dict[str, Any] = {"line": first + i}
            if isinstance(line, TagLine):
                answer |= {"id": line.id} if line.id is not None else {}
                answer |= found[i]
            else:
                answer["error"] = _told(line)
            out.append(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))
        return b"".join(out), amount

    def _parsed(self, raw: bytes) -> TagLine | TagsmithError:
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            return errors.Malformed(f"The line is not JSON: {error.msg}.", code="malformed_json")
        try:
            line = validated(_LINE, value, "The line")
            if (line.tokens is None) == (line.text is None):
                fault = Fault("give tokens or a text", pointer="/tokens")
                raise Invalid("The line is not valid", [fault], code="invalid_request")
            if line.tokens is not None and service.check_tokens([line.tokens]) is dict:
                _check_once(raw)
            if len(line.tokens or line.text or "") > self.limits.tokens:
                raise TooLarge(f"More than {self.limits.tokens} tokens.", code="too_many_tokens")
        except TagsmithError as error:
            return error
        return line

    def _tagged(
        self, places: Sequence[int], lines: Sequence[Any]
    ) -> tuple[dict[int, dict[str, Any]], Amount]:
        """The answers to lines of one kind: all at once or, when one has a fault, each by itself."""
        if not lines:
            return {}, Amount()
        if len(lines) > 1 and self.options.output == "conll":  # one text for all could not be cut again
            return self._one_by_one(places, lines)
        try:
            answer = answers.answer(self.served, self._request(lines))
        except TagsmithError as error:
            if len(lines) == 1:
                return {places[0]: {"error": _told(error)}}, Amount()
            return self._one_by_one(places, lines)
        made = answer.told
        explained = made.pop("explain", None)
        found = {}
        for i, place in enumerate(places):
            own = {
                _NAMES.get(name, name): value if name == "conll" else value[i]
                for name, value in made.items()
                if name not in _ONCE
            }
            if explained is not None:
                own["explain"] = [_without_sentence(token) for token in explained if token["sentence"] == i]
            found[place] = own
        return found, answer.amount

    def _one_by_one(
        self, places: Sequence[int], lines: Sequence[Any]
    ) -> tuple[dict[int, dict[str, Any]], Amount]:
        found: dict[int, dict[str, Any]] = {}
        amount = Amount()
        for place, line in zip(places, lines, strict=True):
            answered, of_this = self._tagged([place], [line])
            found |= answered
            amount += of_this
        return found, amount

    def _request(self, lines: Sequence[TagLine]) -> TagRequest:
        if lines[0].text is not None:
            return request_of(self.options, text=[line.text for line in lines])
        return request_of(self.options, sentences=[line.tokens for line in lines])


def _check_once(raw: bytes) -> None:
    """Raise when an object has a name twice, of which all but the last would be lost unseen."""
    try:
        json.loads(raw, object_pairs_hook=once)
    except TwiceError as error:
        fault = Fault(str(error), pointer="/tokens")
        raise Invalid("An object has a name twice.", [fault], code="invalid_request") from None


def _without_sentence(explanation: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in explanation.items() if name != "sentence"}


def _told(error: TagsmithError) -> dict[str, Any]:
    """An error as a line tells it, with places in the line."""
    places = [
        errors.place(fault.reason, pointer=_in_line(fault.pointer))
        for fault in error.faults[: errors.MAX_FAULTS]
    ]
    return {"code": error.code, "detail": error.message, "errors": places}


def _in_line(pointer: str | None) -> str | None:
    """Say a place in a request of one line as a place in that line."""
    if pointer is None:
        return None
    for given, meant in (("/sentences/0", "/tokens"), ("/text/0", "/text")):
        if pointer == given or pointer.startswith(f"{given}/"):
            return meant + pointer[len(given) :]
    return pointer
