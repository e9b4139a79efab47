"""What can be done with policies."""

from app.deps import Caller
from app.models.conditions import Expected
from app.policies.schemas import NewPolicy
from core.errors import Fault, Invalid, NotFound
from core.store import models, policies
from core.store.engine import Database
from core.store.policies import PolicyRow, Promotion, Rules


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


def _rules(new: NewPolicy) -> Rules:
    return Rules(Promotion(**new.promotion.model_dump()))
