"""Responses of the tagging endpoint: a JSON body or a stream of lines, with metrics and optional tracing."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tagsmith.app import deps
from tagsmith.app.http.bodies import media_type, require_json, require_plain
from tagsmith.app.metrics import names
from tagsmith.app.metrics.meters import Meters
from tagsmith.app.tagging import lines, service
from tagsmith.app.tagging.answers import Amount
from tagsmith.app.tagging.service import Tagged, Tagging
from tagsmith.app.tagging.serving import Served

if TYPE_CHECKING:
    from tagsmith.core.service.tracing.otel import Tracing

VERSION_HEADER = "Model-Version"


class LinesResponse(StreamingResponse):
    """A response that is sent while the request body still arrives.

    The framework's `StreamingResponse` would discard the rest of that body.
    """

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await self.stream_response(send)


async def respond(request: Request) -> Response:
    """Tag the body of a request. The media type selects a plain response or a stream."""
    if media_type(request) == lines.MEDIA_TYPE:
        return await _stream(request)
    require_json(request)
    runtime = deps.of(request)
    raw = await request.body()
    if runtime.tracing is None:
        tagged = await runtime.tagging.answer(raw)
    else:
        tagged = await _traced(runtime.tracing, runtime.tagging, raw)
    count(runtime.meters, tagged.served, tagged.amount, answers=1)
    headers = {VERSION_HEADER: version_of(tagged.served)}
    return Response(tagged.body, media_type="application/json", headers=headers)


def count(meters: Meters, served: Served, amount: Amount, *, answers: int = 0) -> None:
    """Add the amount of tagged input to the metrics."""
    model = served.target.model
    meters.count(names.TAG_REQUESTS, model, amount=answers)
    meters.count(names.TAGGED_SENTENCES, model, amount=amount.sentences)
    meters.count(names.TAGGED_TOKENS, model, amount=amount.tokens)


def version_of(served: Served) -> str:
    """Return the value of the version header."""
    return f"{served.target.model}:{served.target.version}"


async def _stream(request: Request) -> Response:
    """Read the first line and start the stream. Faults of the first line result in an ordinary error response."""
    require_plain(request)
    runtime = deps.of(request)
    limits = lines.LineLimits(runtime.settings.max_line_bytes, runtime.settings.max_tag_tokens)
    batches = lines.split(request.stream(), limits.line_bytes)
    first = await anext(batches, None)
    options = lines.options_of(first[0] if first else b"")
    served = await runtime.serving.resolve(options.model)
    # Reject options that do not fit the model before the response starts.
    service.answer(served, lines.request_of(options, sentences=[]))
    stream = lines.Lines(served, options, limits)
    tally = _Tally(runtime.meters, served)
    body = stream.answers(batches, (first or [])[1:], runtime.tagging.threaded, tally.add)
    if runtime.tracing is not None:
        body = _traced_lines(runtime.tracing, tally, body)
    return LinesResponse(body, media_type=lines.MEDIA_TYPE, headers={VERSION_HEADER: version_of(served)})


async def _traced(tracing: "Tracing", tagging: Tagging, raw: bytes) -> Tagged:
    with tracing.part("tag") as span:
        tagged = await tagging.answer(raw)
        span.set_attributes(_attributes(tagged.served, tagged.amount))
        return tagged


async def _traced_lines(
    tracing: "Tracing", tally: "_Tally", body: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    with tracing.aside("tag") as span:
        try:
            async for answered in body:
                yield answered
        finally:
            span.set_attributes(_attributes(tally.served, tally.amount))


class _Tally:
    """Counts what a stream tags."""

    def __init__(self, meters: Meters, served: Served) -> None:
        self.served = served
        self.amount = Amount()
        self._meters = meters
        count(meters, served, self.amount, answers=1)

    def add(self, amount: Amount) -> None:
        self.amount += amount
        count(self._meters, self.served, amount)


def _attributes(served: Served, amount: Amount) -> dict[str, str | int]:
    target = served.target
    return {
        "tagsmith.model": target.model,
        "tagsmith.version": target.version,
        "tagsmith.sentences": amount.sentences,
        "tagsmith.tokens": amount.tokens,
    }
