"""Tagging a stream: one output line per input line, in order, by one model version, with few lines in memory.

The first line has the options of a plain request, without sentences. Its output line has the model and the version.
Every further line is a sentence or a text, and is tagged as soon as it arrives. The output line of an invalid line is
an error, and the stream continues with the next line.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect

from tagsmith.app.http import problems
from tagsmith.app.http.bodies import parse_json, refuse_repeated_names
from tagsmith.app.tagging import parsing, service
from tagsmith.app.tagging.answers import Amount
from tagsmith.app.tagging.serving import Served
from tagsmith.core.base.errors import Fault, FaultType, Invalid, TagsmithError, TooLarge
from tagsmith.core.base.regex import limited, regex
from tagsmith.core.base.spec import validated
from tagsmith.wire import LineOptions, TagLine, TagRequest

MEDIA_TYPE = "application/x-ndjson"

#: Fields of a plain response that have another name in an output line, and that name.
_NAMES = {"probabilities": "probability"}
#: Fields that only the first output line has.
_ONCE = ("model", "version", "labels", "calibrated")
#: Fields that are one text for all sentences.
_TEXTS = ("conll", "conllu")
#: Fields with explanations of single tokens, which name their sentence.
_EXPLAINED = ("explain", "arcs")


_OPTIONS: TypeAdapter[LineOptions] = TypeAdapter(LineOptions)
_LINE: TypeAdapter[TagLine] = TypeAdapter(TagLine)


#: The output lines of some input lines, and the amount of tagged input.
Batch = tuple[bytes, Amount]


@dataclass(frozen=True, slots=True)
class LineLimits:
    """Limits of one line."""

    line_bytes: int
    tokens: int


def options_of(line: bytes) -> LineOptions:
    """Parse the first line."""
    options = validated(_OPTIONS, parse_json(line), "The first line")
    if options.constraints is not None and options.constraints.tags is not None:
        fault = Fault(
            "tags cannot be fixed for all lines alike",
            pointer="/constraints/tags",
            type=FaultType.INCONSISTENT,
        )
        raise Invalid("The first line is not valid", [fault], code="invalid_spec")
    return options


def request_of(options: LineOptions, **given: Any) -> TagRequest:
    """Return the equivalent plain request for sentences or texts that are already validated."""
    # A stream can mix lines of tokens and lines of text. The tokenizer applies only to text.
    tokenizer = options.tokenizer if "text" in given else None
    named = {name: getattr(options, name) for name in LineOptions.model_fields}
    return TagRequest.model_construct(**{**named, "tokenizer": tokenizer}, **given)


async def split(chunks: AsyncIterator[bytes], line_bytes: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines that each chunk of a body completes, without blank lines."""
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
    """One open stream."""

    served: Served
    options: LineOptions
    limits: LineLimits

    async def answers(
        self,
        batches: AsyncIterator[list[bytes]],
        first: Sequence[bytes],
        threaded: Callable[[Callable[[], Batch]], Awaitable[Batch]],
        count: Callable[[Amount], None],
    ) -> AsyncIterator[bytes]:
        """Yield the output lines.

        `first` has the lines that arrived together with the options. `threaded` runs work in a thread. `count` is
        called with the amount of each batch.
        """
        target = self.served.target
        head: dict[str, Any] = {"model": target.model, "version": target.version}
        if self.options.distributions:
            head["labels"] = self.served.tagger.labels
        uncalibrated = self.served.tagger.model.usage.calibrated is False
        if uncalibrated and request_of(self.options, sentences=[]).probable:
            head["calibrated"] = False
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
        except TagsmithError as error:  # the response has started: only an output line can report it
            yield orjson.dumps({"line": number, "error": _told(error)}) + b"\n"

    def batch(self, lines: Sequence[bytes], first: int) -> Batch:
        """Tag some lines and return their output lines.

        `first` is the number of the first line in the body. Numbers start at 1 and skip blank lines.
        """
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
            return problems.Malformed(f"The line is not JSON: {error.msg}.", code="malformed_json")
        try:
            line = validated(_LINE, value, "The line")
            if (line.tokens is None) == (line.text is None):
                fault = Fault(
                    "give tokens or a text",
                    pointer="/tokens",
                    type="missing" if line.text is None else FaultType.INCONSISTENT,
                )
                raise Invalid("The line is not valid", [fault], code="invalid_request")
            if line.tokens is not None and parsing.check_tokens([line.tokens]) is dict:
                refuse_repeated_names(raw, "/tokens")
            if len(line.tokens or line.text or "") > self.limits.tokens:
                raise TooLarge(f"More than {self.limits.tokens} tokens.", code="too_many_tokens")
        except TagsmithError as error:
            return error
        return line

    def _tagged(
        self, places: Sequence[int], lines: Sequence[Any]
    ) -> tuple[dict[int, dict[str, Any]], Amount]:
        """Tag lines of one kind: all together or, if one is invalid, each separately."""
        if not lines:
            return {}, Amount()
        # The text of several lines cannot be split.
        if len(lines) > 1 and self.options.output in _TEXTS:
            return self._one_by_one(places, lines)
        try:
            with limited():
                answer = service.answer(self.served, self._request(lines))
        except TagsmithError as error:
            if len(lines) == 1:
                return {places[0]: {"error": _told(error)}}, Amount()
            return self._one_by_one(places, lines)
        made = {name: value for name, value in answer.told.items() if name not in _ONCE}
        found = {}
        for i, place in enumerate(places):
            found[place] = {_NAMES.get(name, name): _of_line(name, value, i) for name, value in made.items()}
        return found, answer.amount

    def _one_by_one(
        self, places: Sequence[int], lines: Sequence[Any]
    ) -> tuple[dict[int, dict[str, Any]], Amount]:
        found: dict[int, dict[str, Any]] = {}
        amount = Amount()
        for place, line in zip(places, lines, strict=True):
            with limited(
                regex.INTERACTIVE_STEPS // len(lines)
            ):  # all of them may take as long as one request
                answered, of_this = self._tagged([place], [line])
            found |= answered
            amount += of_this
        return found, amount

    def _request(self, lines: Sequence[TagLine]) -> TagRequest:
        if lines[0].text is not None:
            return request_of(self.options, text=[line.text for line in lines])
        return request_of(self.options, sentences=[line.tokens for line in lines])


def _of_line(name: str, value: Any, i: int) -> Any:
    """Return what the field `name` of a response to several lines has for line `i`."""
    if name in _EXPLAINED:
        return [_without_sentence(each) for each in value if each["sentence"] == i]
    return value if name in _TEXTS else value[i]


def _without_sentence(explanation: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in explanation.items() if name != "sentence"}


def _told(error: TagsmithError) -> dict[str, Any]:
    """Return the fields of an error, with pointers relative to the line."""
    places = [
        problems.fault_entry(fault.reason, type=fault.type, pointer=_in_line(fault.pointer))
        for fault in error.faults[: problems.MAX_FAULTS]
    ]
    return {"code": error.code, "detail": error.message, "errors": places}


def _in_line(pointer: str | None) -> str | None:
    """Convert a pointer into a request of one line to a pointer into that line."""
    if pointer is None:
        return None
    for given, meant in (("/sentences/0", "/tokens"), ("/text/0", "/text")):
        if pointer == given or pointer.startswith(f"{given}/"):
            return meant + pointer[len(given) :]
    return pointer
