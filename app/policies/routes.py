"""Routes of policies."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from tagsmith import wire
from tagsmith.app.deps import CallerDep, DatabaseDep
from tagsmith.app.http import etags
from tagsmith.app.http.bodies import JsonRoute
from tagsmith.app.http.etags import ExpectedDep, IfNoneMatch
from tagsmith.app.http.params import ModelName
from tagsmith.app.http.policy import policy
from tagsmith.app.policies import service
from tagsmith.core.registry.policies import PolicyRow
from tagsmith.core.store.keys import Scope
from tagsmith.wire import policies

KeepLast = Annotated[policies.KeepLast | None, Query(description="Replaces the value of the policy.")]
KeepRollbacks = Annotated[
    policies.KeepRollbacks | None, Query(description="Replaces the value of the policy.")
]

router = APIRouter(prefix="/models/{name}", tags=["policies"], route_class=JsonRoute)


@router.get("/policy", response_model=wire.Policy, responses={304: {"description": "Unchanged"}})
@policy(Scope.READ, etag=True)
def get_policy(
    name: ModelName, database: DatabaseDep, response: Response, if_none_match: IfNoneMatch = None
) -> PolicyRow:
    """Return the policy of a model."""
    found = service.get(database, name)
    etag = etags.etag(found.seq)
    etags.refuse_unchanged(if_none_match, etag)
    response.headers["ETag"] = etag
    return found


@router.put("/policy", response_model=wire.Policy)
@policy(Scope.PROMOTE, audit=True)
def put_policy(
    name: ModelName,
    body: wire.NewPolicy,
    response: Response,
    database: DatabaseDep,
    caller: CallerDep,
    expected: ExpectedDep,
) -> PolicyRow:
    """Create or replace the policy of a model. It applies from the next move of an alias."""
    made = service.put(database, name, body, caller, expected)
    response.headers["ETag"] = etags.etag(made.seq)
    return made


@router.delete("/policy", status_code=204)
@policy(Scope.PROMOTE, audit=True)
def delete_policy(name: ModelName, database: DatabaseDep, caller: CallerDep, expected: ExpectedDep) -> None:
    """Delete the policy of a model."""
    service.delete(database, name, caller, expected)


@router.get("/retention")
@policy(Scope.READ, etag=True)
def plan_retention(
    name: ModelName, database: DatabaseDep, keep_last: KeepLast = None, keep_rollbacks: KeepRollbacks = None
) -> wire.RetentionPlan:
    """Show which versions retention would remove and why it keeps the others. This request removes nothing.

    It uses the policy of the model; the parameters replace its values.
    """
    return service.retention_plan(database, name, keep_last, keep_rollbacks)
