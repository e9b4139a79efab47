"""Policies of models: what a version must show before an alias may stand for it, and how many are kept."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from core.errors import NotFound, Stale
from core.store import clock, corpora, models, tables

_policy = tables.model_policy


@dataclass(frozen=True, slots=True)
class Promotion:
    """When the aliases that it guards may be moved. Scores are percentages, as everywhere."""

    aliases: list[str]
    metric: str
    #: What scores are of; None is the dev set that each version was trained with.
    corpus: str | None
    minimum: float | None = None
    #: Against the version that the alias stands for, on `corpus`.
    max_drop: float | None = None
    #: The same for the F1 of each type of span.
    max_type_drop: float | None = None

    @property
    def compares(self) -> bool:
        """Whether the score of the version that the alias stands for matters."""
        return self.max_drop is not None or self.max_type_drop is not None


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions are kept, beside those that an alias stands for and those that a job needs."""

    #: The newest.
    keep_last: int
    #: What so many rollbacks of each alias lead to.
    keep_rollbacks: int


@dataclass(frozen=True, slots=True)
class Rules:
    """All that a policy says."""

    promotion: Promotion | None = None
    #: Without it everything is kept.
    retention: Retention | None = None


_NONE: Mapping[str, Any] = {"promotion": None, "corpus": None, "retention": None}


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """The policy of a model. `seq` counts its changes and is its ETag."""

    model: str
    promotion: Promotion | None
    retention: Retention | None
    seq: int
    updated_at: datetime


def get(conn: Connection, model: str) -> PolicyRow:
    """Give the policy of a model."""
    found = find(conn, model)
    if found is None:
        models.get(conn, model)
        raise NotFound(f"model {model} has no policy", code="policy_not_found")
    return found


def find(conn: Connection, model: str) -> PolicyRow | None:
    """Give the policy of a model that has one."""
    row = _row(conn, model)
    return None if row is None or (row.promotion is None and row.retention is None) else _make(row)


def retaining(conn: Connection) -> list[str]:
    """List the models of which not every version is kept."""
    query = sa.select(_policy.c.model).where(_policy.c.retention.is_not(None)).order_by(_policy.c.model)
    return list(conn.scalars(query))


def put(conn: Connection, model: str, rules: Rules, if_match: int | None = None) -> PolicyRow:
    """Give a model its policy, in place of the one it has.

    `if_match` is the `seq` the caller believes in, None to replace whatever is there (0: there must be none). The
    corpus that it names must be there, and cannot be deleted from then on.
    """
    models.lock(conn, model)
    values = dict(_NONE)
    if rules.promotion is not None:
        values["promotion"] = asdict(rules.promotion)
        values["corpus"] = corpus = values["promotion"].pop("corpus")
        corpora.hold(conn, [] if corpus is None else [corpus])
    if rules.retention is not None:
        values["retention"] = asdict(rules.retention)
    return _make(_store(conn, model, values, if_match))


def delete(conn: Connection, model: str, if_match: int | None = None) -> None:
    """Remove the policy of a model."""
    models.lock(conn, model)
    get(conn, model)
    _store(conn, model, _NONE, if_match)


def present_seq(conn: Connection, model: str) -> int:
    """The number of the last change of a policy, 0 when there is none."""
    found = find(conn, model)
    return 0 if found is None else found.seq


def _store(conn: Connection, model: str, values: Mapping[str, Any], if_match: int | None) -> Row[Any]:
    present = present_seq(conn, model)
    if if_match is not None and if_match != present:
        message = f"the policy is at change {present}, not {if_match}: someone changed it"
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
        None if row.promotion is None else Promotion(**row.promotion, corpus=row.corpus),
        None if row.retention is None else Retention(**row.retention),
        row.seq,
        row.updated_at,
    )
