"""The route that tags."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from app import deps
from app.body import require_json
from app.tagging import schemas


class DirectRoute(APIRoute):
    """A route whose endpoint takes the request and nothing else, and is called without the framework's injection.

    That would look for parameters that are not there, in a third of the time that a short sentence takes in all.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)

        async def direct(scope: Scope, receive: Receive, send: Send) -> None:
            response = await self.endpoint(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = direct


router = APIRouter(tags=["tagging"], route_class=DirectRoute)

#: The body is read by hand, once, straight into what the tagger takes; OpenAPI still says what it is.
TAG_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TagRequest"}}},
    }
}
MODELS = (schemas.TagRequest,)


@router.post("/tag", responses={200: {"model": schemas.TagResponse}}, openapi_extra=TAG_BODY)
async def tag(request: Request) -> Response:
    """Tag sentences with the version that the model reference stands for; the answer names it."""
    require_json(request)
    runtime = deps.of(request)
    served, answer = await runtime.tagging.answer(await request.body())
    used = f"{served.target.model}:{served.target.version}"
    return Response(answer, media_type="application/json", headers={"Model-Version": used})
