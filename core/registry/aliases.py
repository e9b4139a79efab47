"""Aliases: names for served versions. Every move is recorded and can be rolled back."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base import suggest
from tagsmith.core.base.errors import Conflict, NotFound, Stale
from tagsmith.core.registry import generations, models, promotion
from tagsmith.core.store import clock, paging, tables

MOVE = "move"
ROLLBACK = "rollback"

_alias = tables.alias
_moves = tables.alias_move
_HISTORY = paging.SortKey((_moves.c.seq,))


@dataclass(frozen=True, slots=True)
class AliasRow:
    """The present target of an alias. `seq` counts its moves and is its ETag."""

    model: str
    alias: str
    version: int
    seq: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One move of an alias."""

    seq: int
    #: `move` or `rollback`.
    action: str
    from_version: int | None
    to_version: int
    #: For a rollback, the move whose result was restored.
    to_seq: int | None
    actor: str | None
    reason: str | None
    request_id: str | None
    #: For a forced move, the objections of the policy.
    forced: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """The target of a rollback: a number of steps back, or the state after a move, given by its number or a time."""

    steps: int = 1
    to: int | datetime | None = None


@dataclass(frozen=True, slots=True)
class MoveContext:
    """Who moves an alias, why, and in which request."""

    actor: str | None = None
    reason: str | None = None
    request_id: str | None = None
    #: For a forced move, the objections of the policy.
    forced: str | None = None


def move(
    conn: Connection,
    model: str,
    alias: str,
    version: int,
    context: MoveContext = MoveContext(),  # noqa: B008  # immutable
    if_match: int | None = None,
    *,
    force: bool = False,
) -> AliasRow:
    """Point an alias at a version; create the alias if it does not exist.

    `if_match` is the `seq` that the caller expects, 0 if the alias must not exist yet, None for any. A move to the
    present version changes and records nothing, so a repeated call cannot spoil a rollback. Raises
    `promotion.PromotionRefused` if the policy of the model objects, unless `force` is set.
    """
    models.lock(conn, model)
    present = _find(conn, model, alias)
    _check(present, if_match)
    wanted = models.version(conn, model, version)
    if present is not None and present.version == version:
        return present
    champion = None if present is None else models.version(conn, model, present.version)
    forced = promotion.check(conn, alias, wanted, champion, force=force)
    return _point(conn, model, alias, present, version, MOVE, dataclasses.replace(context, forced=forced))


def rollback(
    conn: Connection,
    model: str,
    alias: str,
    context: MoveContext = MoveContext(),  # noqa: B008  # immutable
    if_match: int | None = None,
    target: RollbackTarget = RollbackTarget(),  # noqa: B008  # immutable
) -> AliasRow:
    """Return an alias to an earlier version. Two rollbacks go two steps back. Deleted versions are skipped.

    `target` can be several steps back, or any point of the history. The policy is not checked: if the present version
    is found to be bad, the previous one must be restored at once.
    """
    models.lock(conn, model)
    present = get(conn, model, alias)
    _check(present, if_match)
    state = (
        _steps_back(conn, present, target.steps)
        if target.to is None
        else _state_at(conn, model, alias, target.to)
    )
    if state.version == present.version:
        return present
    return _point(conn, model, alias, present, state.version, ROLLBACK, context, to_seq=state.seq)


def at(conn: Connection, model: str, alias: str, when: datetime) -> AliasRow:
    """Return the state of an alias at a time, or raise NotFound if it did not exist yet."""
    get(conn, model, alias)
    query = _select_states(model, alias).where(_moves.c.at <= when).order_by(_moves.c.seq.desc()).limit(1)
    row = conn.execute(query).one_or_none()
    if row is None:
        message = f"Model {model} had no alias {alias} at {clock.rfc3339(when)}."
        raise NotFound(message, code="alias_not_found")
    return AliasRow(**row._asdict())


def get(conn: Connection, model: str, alias: str) -> AliasRow:
    """Return an alias, or raise NotFound."""
    found = _find(conn, model, alias)
    if found is None:
        raise missing(model, alias, models.get(conn, model).aliases)
    return found


def missing(model: str, alias: str, known: Iterable[str]) -> NotFound:
    """Make the error for an alias that does not exist. It suggests an alias with a similar name."""
    return NotFound(suggest.missing(f"alias of model {model} named", alias, known), code="alias_not_found")


def list_all(conn: Connection, model: str) -> list[AliasRow]:
    """List the aliases of a model by name."""
    models.get(conn, model)
    query = sa.select(_alias).where(_alias.c.model == model).order_by(_alias.c.alias)
    return [AliasRow(**row._asdict()) for row in conn.execute(query)]


def history(
    conn: Connection, model: str, alias: str, limit: int, cursor: str | None = None
) -> paging.Page[MoveRow]:
    """List the moves of an alias, newest first."""
    get(conn, model, alias)
    query = sa.select(*(column for column in _moves.c if column.name not in ("model", "alias"))).where(
        _moves.c.model == model, _moves.c.alias == alias
    )
    return paging.fetch(conn, query, _HISTORY, limit, cursor, lambda row: MoveRow(**row._asdict()))


def _find(conn: Connection, model: str, alias: str) -> AliasRow | None:
    query = sa.select(_alias).where(_alias.c.model == model, _alias.c.alias == alias)
    row = conn.execute(query).one_or_none()
    return None if row is None else AliasRow(**row._asdict())


def _check(present: AliasRow | None, if_match: int | None) -> None:
    seq = 0 if present is None else present.seq
    if if_match is not None and if_match != seq:
        raise Stale(
            f"The alias is at move {seq}, not {if_match}. Read it again and retry.", code="alias_moved"
        )


def _select_states(model: str, alias: str) -> sa.Select[Any]:
    """Select the state of an alias after each of its moves."""
    return sa.select(
        _moves.c.model,
        _moves.c.alias,
        _moves.c.to_version.label("version"),
        _moves.c.seq,
        _moves.c.at.label("updated_at"),
    ).where(_moves.c.model == model, _moves.c.alias == alias)


def rollback_targets(conn: Connection, present: AliasRow) -> "Iterator[_State]":
    """Yield the results of one rollback, of two rollbacks, and so on. Deleted versions are skipped.

    `present` can be a past state; later moves are then ignored.
    """
    moves = _ordered_moves(present.model, present.alias).where(_moves.c.seq <= present.seq)
    stack = _undo_stack(conn.execute(moves))
    numbers = tables.model_version.c
    existing = set(conn.scalars(sa.select(numbers.version).where(numbers.model == present.model)))
    found = _State(present.seq, present.version)
    while stack:
        earlier = stack.pop()
        if earlier.version != found.version and earlier.version in existing:
            found = earlier
            yield found


def _steps_back(conn: Connection, present: AliasRow, steps: int) -> "_State":
    """Return the result of `steps` rollbacks, or raise Conflict if there are not so many."""
    states = list(itertools.islice(rollback_targets(conn, present), steps))
    if len(states) == steps:
        return states[-1]
    name, possible = f"{present.model}@{present.alias}", len(states)
    message = (
        f"{name} can go back {possible} step{'s' * (possible > 1)}, not {steps}."
        if states
        else f"{name} has no earlier version to return to."
    )
    raise Conflict(message, code="nothing_to_roll_back")


def _state_at(conn: Connection, model: str, alias: str, to: int | datetime) -> "_State":
    """Return the state of an alias after a move or at a time."""
    if isinstance(to, datetime):
        row: Any = at(conn, model, alias, to)
    else:
        row = conn.execute(_select_states(model, alias).where(_moves.c.seq == to)).one_or_none()
        if row is None:
            raise NotFound(f"{model}@{alias} has no move {to}.", code="move_not_found")
    try:
        models.version(conn, model, row.version)
    except NotFound:
        message = (
            f"{model}@{alias} pointed to version {row.version} then, which was deleted. Choose another point."
        )
        raise Conflict(message, code="version_deleted") from None
    return _State(row.seq, row.version)


def _point(
    conn: Connection,
    model: str,
    alias: str,
    present: AliasRow | None,
    version: int,
    action: str,
    context: MoveContext,
    to_seq: int | None = None,
) -> AliasRow:
    now = clock.now(conn)
    if present is None:
        # After the moves of a deleted model of this name.
        before = conn.execute(
            sa.select(tables.model.c.last_move).where(tables.model.c.name == model)
        ).scalar_one()
        row = AliasRow(model, alias, version, before + 1, now)
        values = {"model": model, "alias": alias, "version": version, "seq": row.seq, "updated_at": now}
        conn.execute(_alias.insert().values(**values))
    else:
        row = AliasRow(model, alias, version, present.seq + 1, now)
        where = sa.and_(_alias.c.model == model, _alias.c.alias == alias)
        conn.execute(_alias.update().where(where).values(version=version, seq=row.seq, updated_at=now))
    conn.execute(
        _moves.insert().values(
            model=model,
            alias=alias,
            seq=row.seq,
            action=action,
            from_version=None if present is None else present.version,
            to_version=version,
            to_seq=to_seq,
            actor=context.actor,
            reason=context.reason,
            request_id=context.request_id,
            forced=context.forced,
            at=now,
        )
    )
    generations.bump(conn)
    return row


def _ordered_moves(model: str, alias: str) -> sa.Select[Any]:
    columns = (_moves.c.seq, _moves.c.action, _moves.c.from_version, _moves.c.to_version, _moves.c.to_seq)
    return sa.select(*columns).where(_moves.c.model == model, _moves.c.alias == alias).order_by(_moves.c.seq)


class _State(NamedTuple):
    """The version of an alias after a move."""

    seq: int
    version: int


def _undo_stack(moves: Iterable[Row[Any]]) -> list[_State]:
    """Replay the history: a move pushes the previous state, a rollback pops back to its target.

    A rollback to a state that is not on the stack counts as a move. Old rollbacks recorded only the version.
    """
    stack: list[_State] = []
    for each in moves:
        if each.action == ROLLBACK and each.to_seq is None:
            while stack and stack.pop().version != each.to_version:
                pass
        elif each.action == ROLLBACK and any(state.seq == each.to_seq for state in stack):
            while stack.pop().seq != each.to_seq:
                pass
        elif each.from_version is not None:
            stack.append(_State(each.seq - 1, each.from_version))
    return stack
