"""The route that tags."""

from fastapi import APIRouter, Request, Response

from app import deps
from app.body import require_json
from app.tagging import schemas

router = APIRouter(tags=["tagging"])

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
