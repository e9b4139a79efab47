"""Policies of models: the scores that a promotion requires, and which versions are kept."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base.errors import NotFound, Stale
from tagsmith.core.registry import models
from tagsmith.core.store import clock, corpora, tables

_policy = tables.model_policy


@dataclass(frozen=True, slots=True)
class PromotionRules:
    """Rules for moving the guarded aliases. Scores are percentages."""

    aliases: list[str]
    metric: str
    #: The corpus that scores refer to; None for the dev set of each version's training.
    corpus: str | None
    minimum: float | None = None
    #: Maximum drop of the metric against the version that the alias points to.
    max_drop: float | None = None
    #: Maximum drop of the F1 of each span type.
    max_type_drop: float | None = None

    @property
    def compares(self) -> bool:
        """Whether the rules compare with the version that the alias points to."""
        return self.max_drop is not None or self.max_type_drop is not None


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """Which versions are kept, besides those that aliases and active jobs use."""

    #: Number of newest versions to keep.
    keep_last: int
    #: Number of rollback targets of each alias to keep.
    keep_rollbacks: int


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """The rules of a policy."""

    promotion: PromotionRules | None = None
    #: None keeps all versions.
    retention: RetentionRules | None = None


_NONE: Mapping[str, Any] = {"promotion": None, "corpus": None, "retention": None}


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The policy of a model. `seq` counts its changes and is its ETag."""

    model: str
    promotion: PromotionRules | None
    retention: RetentionRules | None
    seq: int
    updated_at: datetime


def get(conn: Connection, model: str) -> PolicyRow:
    """Return the policy of a model, or raise NotFound."""
    found = find(conn, model)
    if found is None:
        models.get(conn, model)
        raise NotFound(f"Model {model} has no policy.", code="policy_not_found")
    return found


def find(conn: Connection, model: str) -> PolicyRow | None:
    """Return the policy of a model, or None."""
    row = _row(conn, model)
    return None if row is None or (row.promotion is None and row.retention is None) else _make(row)


def retaining(conn: Connection) -> list[str]:
    """List the models with retention rules."""
    query = sa.select(_policy.c.model).where(_policy.c.retention.is_not(None)).order_by(_policy.c.model)
    return list(conn.scalars(query))


def put(conn: Connection, model: str, rules: PolicyRules, if_match: int | None = None) -> PolicyRow:
    """Set or replace the policy of a model.

    `if_match` is the `seq` that the caller expects, 0 if there must be no policy, None for any. The corpus of the
    policy must exist, and cannot be deleted while the policy names it.
    """
    models.lock(conn, model)
    values = dict(_NONE)
    if rules.promotion is not None:
        values["promotion"] = asdict(rules.promotion)
        corpus = values["promotion"].pop("corpus")
        if corpus is not None:
            (values["corpus"],) = corpora.hold(conn, [corpora.get(conn, corpus).id])
    if rules.retention is not None:
        values["retention"] = asdict(rules.retention)
    return _make(_store(conn, model, values, if_match))


def delete(conn: Connection, model: str, if_match: int | None = None) -> None:
    """Remove the policy of a model."""
    models.lock(conn, model)
    get(conn, model)
    _store(conn, model, _NONE, if_match)


def present_seq(conn: Connection, model: str) -> int:
    """Return the number of the last change of a policy; 0 if there is none."""
    found = find(conn, model)
    return 0 if found is None else found.seq


def _store(conn: Connection, model: str, values: Mapping[str, Any], if_match: int | None) -> Row[Any]:
    present = present_seq(conn, model)
    if if_match is not None and if_match != present:
        message = f"The policy is at change {present}, not {if_match}. Read it again and retry."
        raise Stale(message, code="policy_changed")
    before = _row(conn, model)
    changed = {**values, "seq": 1 if before is None else before.seq + 1, "updated_at": clock.now(conn)}
    if before is None:
        query: Any = _policy.insert().values(model=model, **changed)
    else:
        query = _policy.update().where(_policy.c.model == model).values(**changed)
    return conn.execute(query.returning(_policy)).one()


def _row(conn: Connection, model: str) -> Row[Any] | None:
    return conn.execute(sa.select(_policy).where(_policy.c.model == model)).one_or_none()


def _make(row: Row[Any]) -> PolicyRow:
    return PolicyRow(
        row.model,
        None if row.promotion is None else PromotionRules(**row.promotion, corpus=row.corpus),
        None if row.retention is None else RetentionRules(**row.retention),
        row.seq,
        row.updated_at,
    )
