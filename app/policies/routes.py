"""Routes of policies."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.body import JsonRoute
from app.deps import CallerDep, DatabaseDep
from app.models import conditions
from app.models.conditions import ExpectedDep, IfNoneMatch
from app.params import ModelName
from app.policies import schemas, service
from core.store.policies import PolicyRow

KeepLast = Annotated[schemas.KeepLast | None, Query(description="In place of the policy's.")]
KeepRollbacks = Annotated[schemas.KeepRollbacks | None, Query(description="In place of the policy's.")]

router = APIRouter(prefix="/models/{name}", tags=["policies"], route_class=JsonRoute)


@router.get("/policy", response_model=schemas.Policy, responses={304: {"description": "Unchanged"}})
def get_policy(
    name: ModelName, database: DatabaseDep, response: Response, if_none_match: IfNoneMatch = None
) -> PolicyRow:
    """Give the policy of a model."""
    found = service.get(database, name)
    etag = conditions.etag(found.seq)
    conditions.refuse_unchanged(if_none_match, etag)
    response.headers["ETag"] = etag
    return found


@router.put("/policy", response_model=schemas.Policy)
def put_policy(
    name: ModelName,
    body: schemas.NewPolicy,
    response: Response,
    database: DatabaseDep,
    caller: CallerDep,
    expected: ExpectedDep,
) -> PolicyRow:
    """Give a model its policy, in place of the one it has. It holds from the next move on."""
    made = service.put(database, name, body, caller, expected)
    response.headers["ETag"] = conditions.etag(made.seq)
    return made


@router.delete("/policy", status_code=204)
def delete_policy(name: ModelName, database: DatabaseDep, caller: CallerDep, expected: ExpectedDep) -> None:
    """Remove the policy of a model."""
    service.delete(database, name, caller, expected)


@router.get("/retention")
def plan_retention(
    name: ModelName, database: DatabaseDep, keep_last: KeepLast = None, keep_rollbacks: KeepRollbacks = None
) -> schemas.RetentionPlan:
    """Say which versions retention would remove, and why it keeps the others; removes nothing.

    It goes by the policy of the model, or by what is given instead, to see what a policy would do.
    """
    return service.retention_plan(database, name, keep_last, keep_rollbacks)
