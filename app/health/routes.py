"""Routes for health and version."""

from fastapi import APIRouter, Request, Response

from tagsmith import wire
from tagsmith.app.deps import RuntimeDep
from tagsmith.app.health import service
from tagsmith.app.http import problems
from tagsmith.app.http.params import PROBLEM_RESPONSE
from tagsmith.app.http.policy import policy

router = APIRouter(tags=["health"])


@router.get("/livez")
@policy(scope=None, traced=False)
async def livez() -> wire.Liveness:
    """Report that the process responds."""
    return wire.Liveness()


@router.get("/readyz", response_model=wire.Readiness, responses={503: dict(PROBLEM_RESPONSE)})
@policy(scope=None, traced=False)
async def readyz(request: Request, runtime: RuntimeDep) -> wire.Readiness | Response:
    """Report whether the process can serve, and if not, why."""
    checks = await runtime.health.checks()
    reasons = [check.detail for check in checks.values() if not check.ok]
    if not any(check.fatal and not check.ok for check in checks.values()):
        return wire.Readiness(status="degraded" if reasons else "ready", checks=checks, reasons=reasons)
    extra = {"reasons": reasons, "checks": {name: check.model_dump() for name, check in checks.items()}}
    faults = [
        problems.fault_entry(check.detail, parameter=name) for name, check in checks.items() if not check.ok
    ]
    return problems.problem_response(request.scope, 503, "not_ready", "; ".join(reasons), faults, extra=extra)


@router.get("/version")
@policy(scope=None)
def version() -> wire.ServerVersion:
    """Return the version of the running code."""
    return service.code()
