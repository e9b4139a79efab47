"""Retention: which versions of a model are kept and why, and the removal of the others."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.registry import aliases, models, policies
from tagsmith.core.registry.policies import RetentionRules
from tagsmith.core.store import tables
from tagsmith.core.store.states import TERMINAL

_version = tables.model_version


@dataclass(frozen=True, slots=True)
class RemovableVersion:
    """A version that retention can remove."""

    version: int
    size_bytes: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RetainedVersion:
    """A version that is kept, and the reasons."""

    version: int
    because: list[str]


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """The versions to remove, oldest first, and the versions to keep, newest first."""

    remove: list[RemovableVersion]
    keep: list[RetainedVersion]


def plan(conn: Connection, model: str, rules: RetentionRules) -> RemovalPlan:
    """Plan which versions to remove and which to keep."""
    reasons = _reasons(conn, model, rules.keep_rollbacks)
    query = sa.select(_version.c.version, _version.c.size_bytes, _version.c.created_at)
    remove, keep = [], []
    rows = conn.execute(query.where(_version.c.model == model).order_by(_version.c.version.desc()))
    for index, row in enumerate(rows):
        newest = [f"one of the newest {rules.keep_last}"] if index < rules.keep_last else []
        because = newest + reasons.get(row.version, [])
        if because:
            keep.append(RetainedVersion(row.version, because))
        else:
            remove.append(RemovableVersion(**row._asdict()))
    return RemovalPlan(remove[::-1], keep)


def apply(conn: Connection, model: str, at_most: int) -> list[int]:
    """Remove versions by the policy of the model, oldest first; return their numbers.

    The plan is made under the lock that moves of aliases, new jobs and other removals also take, so it still holds when
    the transaction ends.
    """
    models.lock(conn, model)
    policy = policies.find(conn, model)
    if policy is None or policy.retention is None:
        return []
    numbers = [each.version for each in plan(conn, model, policy.retention).remove[:at_most]]
    for number in numbers:
        models.delete_version(conn, model, number)
    return numbers


def _reasons(conn: Connection, model: str, rollbacks: int) -> Mapping[int, list[str]]:
    """Return the reasons to keep versions regardless of their age."""
    found: dict[int, list[str]] = {}
    for alias in aliases.list_all(conn, model):
        found.setdefault(alias.version, []).append(f"{alias.alias} points to it")
        for steps, point in enumerate(
            itertools.islice(aliases.rollback_targets(conn, alias), rollbacks), start=1
        ):
            step = f"{steps} step{'s' * (steps > 1)}"
            found.setdefault(point.version, []).append(f"{step} back from {alias.alias}")
    job, uses = tables.job, tables.job_version
    query = (
        sa.select(uses.c.version, job.c.id)
        .join(job, job.c.id == uses.c.job_id)
        .where(uses.c.model == model, job.c.state.not_in(TERMINAL))
        .order_by(job.c.id)
    )
    for number, job_id in conn.execute(query):
        found.setdefault(number, []).append(f"{job_id} needs it")
    return found
