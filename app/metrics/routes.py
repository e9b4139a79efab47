"""The route of metrics."""

from fastapi import APIRouter, Response

from app.deps import RuntimeDep
from app.metrics import service

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {service.MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def metrics(runtime: RuntimeDep) -> Response:
    """Give the metrics of all API processes on this machine, and of the jobs, as Prometheus reads them."""
    text = await service.exposition(runtime.readings, runtime.database)
    return Response(text, media_type=service.MEDIA_TYPE)
