"""Routes of policies."""

from fastapi import APIRouter, Response

from app.body import JsonRoute
from app.deps import CallerDep, DatabaseDep
from app.models import conditions
from app.models.conditions import ExpectedDep, IfNoneMatch
from app.params import ModelName
from app.policies import schemas, service
from core.store.policies import PolicyRow

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
