"""The route that tags."""

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import deps, errors
from app.body import media_type, require_json, require_plain
from app.deps import Runtime
from app.metrics import names
from app.metrics.meters import Meters
from app.tagging import answers, lines, schemas
from app.tagging.answers import Amount
from app.tagging.service import Tagged, Tagging
from app.tagging.serving import Served
from core.errors import TagsmithError

if TYPE_CHECKING:
    from core.tracing.otel import Tracing


class LinesResponse(StreamingResponse):
    """A response that is sent while the body of its request still comes; the framework's own would read that away."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await self.stream_response(send)


router = APIRouter(tags=["tagging"])

VERSION_HEADER = "Model-Version"

STREAM = (
    "The first line is `LineOptions`, every further one `TagLine`. The first is answered by the model and the version, "
    "every other by a line with its number and its own part of what a plain answer has, or with an error."
)

#: The body is read by hand, once, straight into what the tagger takes; OpenAPI still says what it is.
TAG_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/TagRequest"}},
            lines.MEDIA_TYPE: {"schema": {"type": "string", "description": STREAM}},
        },
    }
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": schemas.TagResponse,
        "content": {lines.MEDIA_TYPE: {"schema": {"type": "string", "description": "A line for each line."}}},
    }
}
MODELS = (schemas.TagRequest, schemas.LineOptions, schemas.TagLine)


@router.post("/tag", responses=ANSWERS, openapi_extra=TAG_BODY)
async def tag(request: Request) -> Response:
    """Tag sentences with the version that the model reference stands for; the answer names it."""
    if media_type(request) == lines.MEDIA_TYPE:
        return await _stream(request)
    require_json(request)
    runtime = deps.of(request)
    raw = await request.body()
    if runtime.tracing is None:
        tagged = await runtime.tagging.answer(raw)
    else:
        tagged = await _traced(runtime.tracing, runtime.tagging, raw)
    _count(runtime.meters, tagged.served, tagged.amount, answers=1)
    return Response(
        tagged.body, media_type="application/json", headers={VERSION_HEADER: _version(tagged.served)}
    )


async def _stream(request: Request) -> Response:
    """Read the first line, which may be refused like any request; from then on every line is answered by a line."""
    require_plain(request)
    runtime = deps.of(request)
    limits = lines.Limits(runtime.settings.max_line_bytes, runtime.settings.max_tag_tokens)
    batches = lines.split(request.stream(), limits.line_bytes)
    first = await anext(batches, None)
    options = lines.options_of(first[0] if first else b"")
    served = await runtime.serving.resolve(options.model)
    # What does not fit the model is said before anything is answered.
    answers.answer(served, lines.request_of(options, sentences=[]))
    stream = lines.Lines(served, options, limits)
    tally = _Tally(runtime.meters, served)
    body = stream.answers(batches, (first or [])[1:], runtime.tagging.threaded, tally.add)
    if runtime.tracing is not None:
        body = _traced_lines(runtime.tracing, tally, body)
    return LinesResponse(body, media_type=lines.MEDIA_TYPE, headers={VERSION_HEADER: _version(served)})


class DirectTagging:
    """Middleware that calls the route of tagging without the framework's routing, injection and layers of handlers.

    These take longer than it takes to tag a short sentence. The route is registered with the framework all the same,
    for other methods and for the document. The request log outside of this knows what to do with a fault of ours.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/tag" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        runtime: Runtime = scope["app"].state.runtime
        if runtime.tracing is not None:
            runtime.tracing.name_route("POST", "/tag")
        try:
            if runtime.tracing is None and _is_plain_json(scope["headers"]):
                tagged = await runtime.tagging.answer(await _body(receive))
                _count(runtime.meters, tagged.served, tagged.amount, answers=1)
                start, end = _messages(tagged.served, tagged.body)
                await send(start)
                await send(end)
                return
            response = await tag(Request(scope, receive, send))
        except ClientDisconnect:
            return
        except TagsmithError as error:
            response = errors.from_error(scope, error)
        await response(scope, receive, send)


async def _traced(tracing: "Tracing", tagging: Tagging, raw: bytes) -> Tagged:
    with tracing.part("tag") as span:
        tagged = await tagging.answer(raw)
        span.set_attributes(_about(tagged.served, tagged.amount))
        return tagged


async def _traced_lines(
    tracing: "Tracing", tally: "_Tally", body: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    with tracing.aside("tag") as span:
        try:
            async for answered in body:
                yield answered
        finally:
            span.set_attributes(_about(tally.served, tally.amount))


class _Tally:
    """Counts what a stream tags, as it does."""

    def __init__(self, meters: Meters, served: Served) -> None:
        self.served = served
        self.amount = Amount()
        self._meters = meters
        _count(meters, served, self.amount, answers=1)

    def add(self, amount: Amount) -> None:
        self.amount += amount
        _count(self._meters, self.served, amount)


def _about(served: Served, amount: Amount) -> dict[str, str | int]:
    target = served.target
    return {
        "tagsmith.model": target.model,
        "tagsmith.version": target.version,
        "tagsmith.sentences": amount.sentences,
        "tagsmith.tokens": amount.tokens,
    }


def _count(meters: Meters, served: Served, amount: Amount, *, answers: int = 0) -> None:
    model = served.target.model
    meters.count(names.TAGGED, model, amount=answers)
    meters.count(names.SENTENCES, model, amount=amount.sentences)
    meters.count(names.TOKENS, model, amount=amount.tokens)


def _is_plain_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body is JSON beyond doubt; whatever else the headers say, the route makes out."""
    json = False
    for name, value in headers:
        if name == b"content-type":
            json = value == b"application/json"
        elif name == b"content-encoding":
            return False
    return json


async def _body(receive: Receive) -> bytes:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        return bytes(message.get("body", b""))
    parts = []
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()
    raise ClientDisconnect


def _messages(served: Served, answer: bytes) -> tuple[Message, Message]:
    """The answer as the server sends it."""
    headers = [
        (b"content-length", b"%d" % len(answer)),
        (b"content-type", b"application/json"),
        (b"model-version", _version(served).encode()),
    ]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    return start, {"type": "http.response.body", "body": answer}


def _version(served: Served) -> str:
    return f"{served.target.model}:{served.target.version}"
