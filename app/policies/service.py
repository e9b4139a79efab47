"""What can be done with policies."""

from app.deps import Caller
from app.models.conditions import Expected
from app.policies.schemas import (
    DEFAULT_KEEP_LAST,
    DEFAULT_KEEP_ROLLBACKS,
    KeptVersion,
    NewPolicy,
    RemovedVersion,
    RetentionPlan,
)
from core.errors import Fault, Invalid, NotFound
from core.store import models, policies, retention
from core.store.engine import Database
from core.store.policies import PolicyRow, Promotion, Retention, Rules


def get(database: Database, model: str) -> PolicyRow:
    """Give the policy of a model."""
    with database.read() as conn:
        return policies.get(conn, model)


def put(database: Database, model: str, new: NewPolicy, caller: Caller, expected: Expected) -> PolicyRow:
    """Give a model its policy."""
    with database.write() as conn:
        models.lock(conn, model)
        seq = expected.chosen(policies.present_seq(conn, model))
        try:
            made = policies.put(conn, model, _rules(new), seq)
        except NotFound as error:
            fault = Fault(error.message, pointer="/promotion/corpus")
            raise Invalid(
                "The policy names a corpus that does not exist.", [fault], code=error.code
            ) from None
        caller.record(conn)
    return made


def delete(database: Database, model: str, caller: Caller, expected: Expected) -> None:
    """Remove the policy of a model."""
    with database.write() as conn:
        models.lock(conn, model)
        policies.delete(conn, model, expected.chosen(policies.present_seq(conn, model)))
        caller.record(conn)


def retention_plan(
    database: Database, model: str, keep_last: int | None, keep_rollbacks: int | None
) -> RetentionPlan:
    """Say what retention would remove: the policy's, with what is given in place of what that says."""
    with database.read() as conn:
        models.get(conn, model)
        policy = policies.find(conn, model)
        stored = None if policy is None else policy.retention
        base = stored or Retention(DEFAULT_KEEP_LAST, DEFAULT_KEEP_ROLLBACKS)
        rules = Retention(
            base.keep_last if keep_last is None else keep_last,
            base.keep_rollbacks if keep_rollbacks is None else keep_rollbacks,
        )
        found = retention.plan(conn, model, rules)
    return RetentionPlan(
        model=model,
        keep_last=rules.keep_last,
        keep_rollbacks=rules.keep_rollbacks,
        in_force=rules == stored,
        size_bytes=sum(each.size_bytes for each in found.remove),
        remove=[RemovedVersion.model_validate(each) for each in found.remove],
        keep=[KeptVersion.model_validate(each) for each in found.keep],
    )


def _rules(new: NewPolicy) -> Rules:
    return Rules(
        None if new.promotion is None else Promotion(**new.promotion.model_dump()),
        None if new.retention is None else Retention(**new.retention.model_dump()),
    )
