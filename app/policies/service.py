"""Operations on policies."""

from tagsmith.app.deps import Caller
from tagsmith.app.http.etags import Expected
from tagsmith.core.base.errors import Fault, Invalid, NotFound
from tagsmith.core.registry import models, policies, retention
from tagsmith.core.registry.policies import PolicyRow, PolicyRules, PromotionRules, RetentionRules
from tagsmith.core.store.engine import Database
from tagsmith.wire import KeptVersion, NewPolicy, RemovedVersion, RetentionPlan
from tagsmith.wire.policies import DEFAULT_KEEP_LAST, DEFAULT_KEEP_ROLLBACKS


def get(database: Database, model: str) -> PolicyRow:
    """Return the policy of a model."""
    with database.read() as conn:
        return policies.get(conn, model)


def put(database: Database, model: str, new: NewPolicy, caller: Caller, expected: Expected) -> PolicyRow:
    """Create or replace the policy of a model."""
    with database.write() as conn:
        models.lock(conn, model)
        seq = expected.expected_state(policies.present_seq(conn, model))
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
    """Delete the policy of a model."""
    with database.write() as conn:
        models.lock(conn, model)
        policies.delete(conn, model, expected.expected_state(policies.present_seq(conn, model)))
        caller.record(conn)


def retention_plan(
    database: Database, model: str, keep_last: int | None, keep_rollbacks: int | None
) -> RetentionPlan:
    """Show what retention would remove. Given values replace those of the policy."""
    with database.read() as conn:
        models.get(conn, model)
        policy = policies.find(conn, model)
        stored = None if policy is None else policy.retention
        base = stored or RetentionRules(DEFAULT_KEEP_LAST, DEFAULT_KEEP_ROLLBACKS)
        rules = RetentionRules(
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


def _rules(new: NewPolicy) -> PolicyRules:
    return PolicyRules(
        None if new.promotion is None else PromotionRules(**new.promotion.model_dump()),
        None if new.retention is None else RetentionRules(**new.retention.model_dump()),
    )
