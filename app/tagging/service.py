"""Tagging: from the bytes of a request to the bytes of its answer."""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson
from pydantic import ValidationError

from app import body as json_body
from app import errors
from app.tagging import texts
from app.tagging.schemas import TagRequest
from app.tagging.serving import Served, Serving
from core.corpus.named import TwiceError, members, once
from core.corpus.segmentation import is_coding
from core.errors import Fault, Invalid, TooLarge, Unavailable
from core.evaluate.spans import spans_of
from core.settings import Settings

T = TypeVar("T")

#: Up to here tagging holds the event loop for less than a hop to a thread and back costs, about 0.3 ms.
INLINE_TOKENS = 512
#: A body of this size is read in a tenth of a millisecond.
INLINE_BYTES = 16 * 1024
#: More requests than this waiting for a thread are seconds of work; who comes then is better sent away.
MAX_WAITING = 256

#: Fields that are part of the contract and not served yet, with the value they must have until then.
NOT_YET: dict[str, object] = {"marginals": False, "nbest": 1, "constraints": None, "explain": False}

_BLANK = re.compile(r"\s")


@dataclasses.dataclass(frozen=True, slots=True)
class Tagging:
    """What tagging needs of the process it runs in."""

    serving: Serving
    settings: Settings
    threads: anyio.CapacityLimiter
    #: Until the kernels are compiled nothing is tagged on the event loop: it would stand still for seconds.
    warmed: Callable[[], bool]

    async def answer(self, raw: bytes) -> tuple[Served, bytes]:
        """Tag what a request asks for; give the model used and the JSON of the answer."""
        if len(raw) <= INLINE_BYTES:
            request = self._read(raw)
            served = self.serving.held(request.model) or await self.serving.resolve(request.model)
            if self.warmed() and _tokens(request) <= INLINE_TOKENS:
                return served, tag(served, request)
            return served, await self._threaded(lambda: tag(served, request))
        request, held, answer = await self._threaded(lambda: self._read_and_tag(raw))
        if held is not None:
            return held, answer
        served = await self.serving.resolve(request.model)
        return served, await self._threaded(lambda: tag(served, request))

    def _read_and_tag(self, raw: bytes) -> tuple[TagRequest, Served | None, bytes]:
        """Do all of a large request in one hop to a thread, unless its model has to be opened first."""
        request = self._read(raw)
        held = self.serving.held(request.model)
        return request, held, tag(held, request) if held is not None else b""

    def _read(self, raw: bytes) -> TagRequest:
        request = parse(raw)
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

    async def _threaded(self, work: Callable[[], T]) -> T:
        if self.threads.statistics().tasks_waiting >= MAX_WAITING:
            raise Unavailable("Too many requests wait for tagging.", code="overloaded")
        return await anyio.to_thread.run_sync(work, limiter=self.threads)


def parse(raw: bytes) -> TagRequest:
    """Read a request, or raise with the places that are wrong."""
    try:
        request = TagRequest.model_validate_json(raw)
    except ValidationError as error:
        raise _invalid(error) from None
    if ("sentences" in request.model_fields_set) == (request.text is not None):
        fault = Fault("give sentences or a text", pointer="/sentences" if request.text is None else "/text")
        raise Invalid("The request is not valid.", [fault], code="invalid_request")
    for name, default in NOT_YET.items():
        value = getattr(request, name)
        if value != default:
            fault = Fault(
                f"not supported yet; leave it at {orjson.dumps(default).decode()}", pointer=f"/{name}"
            )
            raise Invalid(f"{name} is not supported yet.", [fault], code="not_yet_supported")
    if check_tokens(request.sentences) is dict:
        check_once(raw, request)
    return request


def check_tokens(sentences: Sequence[Sequence[Any]]) -> type:
    """Check that all tokens are strings, lists of strings, or objects, and say which. At C speed when all is well.

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
    faults = [Fault(*found) for found in islice(_wrong_tokens(sentences), errors.MAX_FAULTS)]
    reason = "Tokens are strings, or all of them lists of strings, or all of them objects."
    raise Invalid(reason, faults, code="invalid_request")


def check_once(raw: bytes, request: TagRequest) -> None:
    """Check that no object of the request has a name twice, of which all but the last would be lost unseen."""
    if members(raw) == len(request.model_fields_set) + sum(map(_members, request.sentences)):
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


def tag(served: Served, request: TagRequest) -> bytes:
    """Tag, and write the answer."""
    answer: dict[str, Any] = {"model": served.target.model, "version": served.target.version}
    sentences: Sequence[Sequence[Any]] = request.sentences
    if request.text is None:
        tags = served.tagger.tag(sentences)
    else:
        _check_cuts(served)
        lines = texts.lines_of(request.texts)
        of_lines = served.tagger.tag([line.characters for line in lines])
        found = texts.words_in(request.texts, lines, of_lines)
        answer["words"] = [each.words for each in found]
        answer["offsets"] = [each.offsets for each in found]
        sentences = texts.joined(lines, [line.characters for line in lines], len(found))
        tags = texts.joined(lines, of_lines, len(found))
    if request.output == "tags":
        answer["tags"] = tags
    elif request.output == "spans":
        names = served.tagger.labels
        answer["spans"] = [[dataclasses.asdict(span) for span in spans_of(each, names)] for each in tags]
    else:
        answer["conll"] = conll(sentences, tags)
    return orjson.dumps(answer)


def _check_cuts(served: Served) -> None:
    """Raise Invalid when a model does not cut text into words."""
    tagger = served.tagger
    if tagger.columns > 1 or not is_coding(tagger.labels):
        reason = "this model does not cut text into words; give sentences"
        raise Invalid(
            "The model does not segment text.", [Fault(reason, pointer="/text")], code="not_a_segmenter"
        )


def conll(sentences: Sequence[Sequence[Any]], tags: Sequence[Sequence[str]]) -> str:
    """Write tagged sentences as column text. A token with a blank in it has no place there."""
    lines: list[str] = []
    for i, (sentence, labels) in enumerate(zip(sentences, tags, strict=True)):
        for j, (token, label) in enumerate(zip(sentence, labels, strict=True)):
            columns = [token] if isinstance(token, str) else [] if isinstance(token, dict) else token
            if not columns or any(not column or _BLANK.search(column) for column in columns):
                fault = Fault(
                    "empty, with a blank or without columns, which column text cannot hold",
                    pointer=f"/sentences/{i}/{j}",
                )
                raise Invalid("A token cannot be written as conll.", [fault], code="unwritable_token")
            lines.append("\t".join([*columns, label]))
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""


def _invalid(error: ValidationError) -> Exception:
    items = error.errors(include_url=False, include_context=True, include_input=False)
    if items[0]["type"] == "json_invalid":
        return json_body.malformed(str(items[0]["ctx"]["error"]))
    faults = [Fault(item["msg"], pointer=errors.pointer(item["loc"])) for item in items[: errors.MAX_FAULTS]]
    return Invalid("The request cannot be tagged.", faults, code="invalid_request")


def _too_many(reason: str, place: str) -> TooLarge:
    return TooLarge("The request is too large.", [Fault(reason, pointer=place)], code="too_many_tokens")
