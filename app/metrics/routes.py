"""The metrics route."""

from fastapi import APIRouter, Response

from tagsmith.app.deps import RuntimeDep
from tagsmith.app.http.policy import policy
from tagsmith.app.metrics import service
from tagsmith.core.store.keys import Scope

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {service.MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
@policy(Scope.READ, traced=False)
async def metrics(runtime: RuntimeDep) -> Response:
    """Return the metrics of all API processes of this machine and of the jobs, in the Prometheus text format."""
    text = await service.exposition(runtime.sampler, runtime.database)
    return Response(text, media_type=service.MEDIA_TYPE)
