"""The tagging route."""

from typing import Any

from fastapi import APIRouter, Request, Response

from tagsmith import wire
from tagsmith.app.http.policy import BodyLimit, policy
from tagsmith.app.tagging import lines, respond
from tagsmith.core.store.keys import Scope

router = APIRouter(tags=["tagging"])

STREAM = (
    "The first line is `LineOptions`, every further one `TagLine`. The response to the first names the model and the "
    "version; every other gets a line with its number and its own part of a plain response, or an error."
)

#: Describes the body in the OpenAPI document. The endpoint parses the body itself, directly into tagger input.
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
        "model": wire.TagResponse,
        "content": {lines.MEDIA_TYPE: {"schema": {"type": "string", "description": "A line for each line."}}},
    }
}
MODELS = (wire.TagRequest, wire.LineOptions, wire.TagLine)


@router.post("/tag", responses=ANSWERS, openapi_extra=TAG_BODY)
@policy(Scope.TAG, body=BodyLimit.TAGGING, streamed_type=lines.MEDIA_TYPE, audit=False)
async def tag(request: Request) -> Response:
    """Tag sentences with the version that the model reference points to; the response names it."""
    return await respond.respond(request)
