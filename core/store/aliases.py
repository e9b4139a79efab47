"""Aliases: names for what is served, with every move recorded and undoable."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from core.errors import Conflict, NotFound, Stale
from core.store import clock, models, paging, promotion, registry, tables

MOVE = "move"
ROLLBACK = "rollback"

_alias = tables.alias
_moves = tables.alias_move
_HISTORY = paging.Key((_moves.c.seq,))


@dataclass(frozen=True, slots=True)
class AliasRow:
    """Where an alias points now. `seq` counts its moves and is its ETag."""

    model: str
    alias: str
    version: int
    seq: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One move of an alias: what, when, who, why."""

    seq: int
    #: `move` or `rollback`.
    action: str
    from_version: int | None
    to_version: int
    #: Of a rollback, the move after which the alias stood as it does again.
    to_seq: int | None
    actor: str | None
    reason: str | None
    request_id: str | None
    #: Of a move that was forced: what the policy has against it.
    forced: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Back:
    """How far to roll back: so many steps, or to what stood after a move, given by its number or a time."""

    steps: int = 1
    to: int | datetime | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """Who moves an alias, why, in which request, and against what."""

    actor: str | None = None
    reason: str | None = None
    request_id: str | None = None
    #: What the policy has against a move that is forced.
    forced: str | None = None


def move(
    conn: Connection,
    model: str,
    alias: str,
    version: int,
    why: Why = Why(),  # noqa: B008  # immutable
    if_match: int | None = None,
    *,
    force: bool = False,
) -> AliasRow:
    """Point an alias at a version, making the alias if it is new.

    `if_match` is the `seq` the caller believes in, None to move whatever it is (0: it must not exist yet).
    Moving it to where it is changes nothing and records nothing, so a repeated call cannot spoil a rollback.
    Raises `promotion.Refused` when the policy of the model is against it, unless told to `force` it.
    """
    models.lock(conn, model)
    present = _find(conn, model, alias)
    _check(present, if_match)
    wanted = models.version(conn, model, version)
    if present is not None and present.version == version:
        return present
    champion = None if present is None else models.version(conn, model, present.version)
    forced = promotion.check(conn, alias, wanted, champion, force=force)
    return _point(conn, model, alias, present, version, MOVE, dataclasses.replace(why, forced=forced))


def rollback(
    conn: Connection,
    model: str,
    alias: str,
    why: Why = Why(),  # noqa: B008  # immutable
    if_match: int | None = None,
    back: Back = Back(),  # noqa: B008  # immutable
) -> AliasRow:
    """Return an alias to what it pointed at before; twice goes two back. Deleted versions are passed over.

    `back` says how far: more steps at once, or to a point of its history, whatever has been undone since. No policy
    is asked: what served before must be there again at once when what serves now is found to be bad.
    """
    models.lock(conn, model)
    present = get(conn, model, alias)
    _check(present, if_match)
    point = _undone(conn, present, back.steps) if back.to is None else _point_of(conn, model, alias, back.to)
    if point.version == present.version:
        return present
    return _point(conn, model, alias, present, point.version, ROLLBACK, why, to_seq=point.seq)


def at(conn: Connection, model: str, alias: str, when: datetime) -> AliasRow:
    """Give where an alias pointed at a time, or raise NotFound when it was not there yet."""
    get(conn, model, alias)
    query = _states(model, alias).where(_moves.c.at <= when).order_by(_moves.c.seq.desc()).limit(1)
    row = conn.execute(query).one_or_none()
    if row is None:
        message = f"model {model} had no alias {alias} at {clock.rfc3339(when)}"
        raise NotFound(message, code="alias_not_found")
    return AliasRow(**row._asdict())


def get(conn: Connection, model: str, alias: str) -> AliasRow:
    """Give one alias."""
    found = _find(conn, model, alias)
    if found is None:
        models.get(conn, model)
        raise NotFound(f"model {model} has no alias {alias}", code="alias_not_found")
    return found


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
        raise Stale(f"the alias is at move {seq}, not {if_match}: someone moved it", code="alias_moved")


def _states(model: str, alias: str) -> sa.Select[Any]:
    """Where an alias pointed after each of its moves."""
    return sa.select(
        _moves.c.model,
        _moves.c.alias,
        _moves.c.to_version.label("version"),
        _moves.c.seq,
        _moves.c.at.label("updated_at"),
    ).where(_moves.c.model == model, _moves.c.alias == alias)


def way_back(conn: Connection, present: AliasRow) -> "Iterator[_State]":
    """What one rollback would lead to, what two would, and so on; versions that were deleted are passed over."""
    stack = _undo_stack(conn.execute(_ordered_moves(present.model, present.alias)))
    numbers = tables.model_version.c
    existing = set(conn.scalars(sa.select(numbers.version).where(numbers.model == present.model)))
    found = _State(present.seq, present.version)
    while stack:
        earlier = stack.pop()
        if earlier.version != found.version and earlier.version in existing:
            found = earlier
            yield found


def _undone(conn: Connection, present: AliasRow, steps: int) -> "_State":
    """What so many rollbacks would lead to."""
    points = list(itertools.islice(way_back(conn, present), steps))
    if len(points) == steps:
        return points[-1]
    place, taken = f"{present.model}@{present.alias}", len(points)
    message = (
        f"{place} can go back {taken} step{'s' * (taken > 1)}, not {steps}"
        if points
        else f"{place} has no earlier version to return to"
    )
    raise Conflict(message, code="nothing_to_roll_back")


def _point_of(conn: Connection, model: str, alias: str, to: int | datetime) -> "_State":
    """What the alias pointed at after a move, or at a time."""
    if isinstance(to, datetime):
        row: Any = at(conn, model, alias, to)
    else:
        row = conn.execute(_states(model, alias).where(_moves.c.seq == to)).one_or_none()
        if row is None:
            raise NotFound(f"{model}@{alias} has no move {to}", code="move_not_found")
    try:
        models.version(conn, model, row.version)
    except NotFound:
        message = f"{model}@{alias} stood for version {row.version} then, which was deleted"
        raise Conflict(message, code="version_deleted") from None
    return _State(row.seq, row.version)


def _point(
    conn: Connection,
    model: str,
    alias: str,
    present: AliasRow | None,
    version: int,
    action: str,
    why: Why,
    to_seq: int | None = None,
) -> AliasRow:
    now = clock.now(conn)
    if present is None:
        row = AliasRow(model, alias, version, 1, now)
        values = {"model": model, "alias": alias, "version": version, "seq": 1, "updated_at": now}
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
            actor=why.actor,
            reason=why.reason,
            request_id=why.request_id,
            forced=why.forced,
            at=now,
        )
    )
    registry.bump(conn)
    return row


def _ordered_moves(model: str, alias: str) -> sa.Select[Any]:
    columns = (_moves.c.seq, _moves.c.action, _moves.c.from_version, _moves.c.to_version, _moves.c.to_seq)
    return sa.select(*columns).where(_moves.c.model == model, _moves.c.alias == alias).order_by(_moves.c.seq)


class _State(NamedTuple):
    """Where an alias pointed, and after which move."""

    seq: int
    version: int


def _undo_stack(moves: Iterable[Row[Any]]) -> list[_State]:
    """Replay the history: a move pushes where the alias was, a rollback pops back to where it went.

    A rollback to a point that had been undone itself is a move like any other. Rollbacks from before points were
    recorded say only the version.
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
