"""Routes of health."""

from fastapi import APIRouter, Request, Response

from app import errors
from app.deps import RuntimeDep
from app.health import schemas, service
from app.params import PROBLEM_RESPONSE

router = APIRouter(tags=["health"])


@router.get("/livez")
async def livez() -> schemas.Live:
    """Say that the process answers."""
    return schemas.Live()


@router.get("/readyz", response_model=schemas.Ready, responses={503: dict(PROBLEM_RESPONSE)})
async def readyz(request: Request, runtime: RuntimeDep) -> schemas.Ready | Response:
    """Say whether the process can serve, and if not, why."""
    checks = await runtime.health.checks()
    reasons = [check.detail for check in checks.values() if not check.ok]
    if not any(check.fatal and not check.ok for check in checks.values()):
        return schemas.Ready(status="degraded" if reasons else "ready", checks=checks, reasons=reasons)
    extra = {"reasons": reasons, "checks": {name: check.model_dump() for name, check in checks.items()}}
    places = [errors.place(check.detail, parameter=name) for name, check in checks.items() if not check.ok]
    return errors.problem_response(request.scope, 503, "not_ready", "; ".join(reasons), places, extra=extra)


@router.get("/version")
def version() -> schemas.Version:
    """Say which code runs."""
    return service.code()
