"""The route that tags."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from app import deps
from app.body import media_type, require_json, require_plain
from app.tagging import answers, lines, schemas
from app.tagging.serving import Served


class DirectRoute(APIRoute):
    """A route whose endpoint takes the request and nothing else, and is called without the framework's injection.

    That would look for parameters that are not there, in a third of the time that a short sentence takes in all.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the endpoint with the request."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


class LinesResponse(StreamingResponse):
    """A response that is sent while the body of its request still comes; the framework's own would read that away."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await self.stream_response(send)


router = APIRouter(tags=["tagging"], route_class=DirectRoute)

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
    served, answer = await deps.of(request).tagging.answer(await request.body())
    return Response(answer, media_type="application/json", headers=_version(served))


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
    body = stream.answers(batches, (first or [])[1:], runtime.tagging.threaded)
    return LinesResponse(body, media_type=lines.MEDIA_TYPE, headers=_version(served))


def _version(served: Served) -> dict[str, str]:
    return {"Model-Version": f"{served.target.model}:{served.target.version}"}
