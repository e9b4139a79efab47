"""Models and their versions. Versions are numbered from 1 and immutable; numbers are never reused."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from tagsmith.core.base import suggest
from tagsmith.core.base.errors import Conflict, Fault, NotFound
from tagsmith.core.registry import evaluations, generations
from tagsmith.core.registry.evaluations import EvaluationRow
from tagsmith.core.store import blobs, clock, paging, tables
from tagsmith.core.store.engine import insert_if_new
from tagsmith.core.store.ids import new_id
from tagsmith.core.store.states import TERMINAL

# The maximum of PostgreSQL's integer. The driver would fail for larger numbers.
MAX_VERSION = 2**31 - 1
#: Maximum number of names among which a similar one is searched.
SUGGESTED_FROM = 1000

_version = tables.model_version
_COLUMNS = [column for column in _version.c if column.name != "blob_id"]
_MODELS = paging.SortKey((tables.model.c.created_at, tables.model.c.name))
_VERSIONS = paging.SortKey((_version.c.version,))


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model: a name with numbered versions."""

    name: str
    created_at: datetime
    #: The newest version; None if all were deleted.
    latest: int | None
    versions: int
    #: Version of each alias.
    aliases: dict[str, int]


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version before it is published."""

    #: The exact objective at the end of training.
    objective: float | None
    active_features: int
    #: Time of optimisation only, without reading, indexing and evaluation.
    train_seconds: float
    metrics: dict[str, Any]
    trainer: dict[str, Any]
    spec: dict[str, Any]
    corpus: str | None
    seed: int
    code_version: str
    job_id: str | None


@dataclass(frozen=True, slots=True)
class VersionRow(NewVersion):
    """A published version."""

    model: str
    version: int
    sha256: str
    size_bytes: int
    created_at: datetime
    #: Of the corpus that it was trained on, also after that was deleted.
    corpus_name: str | None
    corpus_number: int | None
    #: The newest on each corpus, newest first.
    evaluations: tuple[EvaluationRow, ...] = ()


def publish(conn: Connection, name: str, new: NewVersion, chunks: Iterable[bytes]) -> VersionRow:
    """Store a model file as the next version of `name`; create the model if this is its first version."""
    # Write the bytes first: they take longest, and the rows locked after them are shared by all models.
    blob = blobs.write(conn, new_id("blb"), chunks)
    now = clock.now(conn)
    values = {field.name: getattr(new, field.name) for field in dataclasses.fields(new)}
    values |= {"model": name, "version": _next_number(conn, name, now), "created_at": now}
    values |= {"sha256": blob.sha256, "size_bytes": blob.size_bytes}
    values |= evaluations.corpus_names(conn, new.corpus)
    conn.execute(_version.insert().values(**values, blob_id=blob.id))
    generations.bump(conn)
    return VersionRow(**values)


def get(conn: Connection, name: str) -> ModelRow:
    """Return a model, or raise NotFound."""
    row = conn.execute(_models_query().where(tables.model.c.name == name)).one_or_none()
    if row is None:
        raise missing(conn, name)
    return _make_models(conn, [row])[0]


def page(conn: Connection, limit: int, cursor: str | None = None) -> paging.Page[ModelRow]:
    """List models, newest first."""
    rows: paging.Page[Row[Any]] = paging.fetch(conn, _models_query(), _MODELS, limit, cursor, lambda row: row)
    return paging.Page(_make_models(conn, rows.data), rows.next_cursor)


def version(conn: Connection, name: str, number: int) -> VersionRow:
    """Return a version, or raise NotFound."""
    row = conn.execute(sa.select(*_COLUMNS).where(_is(name, number))).one_or_none()
    if row is None:
        raise _missing_version(conn, name, number)
    return _make(conn, name, [row])[0]


def versions(conn: Connection, name: str, limit: int, cursor: str | None = None) -> paging.Page[VersionRow]:
    """List the versions of a model, newest first."""
    get(conn, name)
    query = sa.select(*_COLUMNS).where(_version.c.model == name)
    rows: paging.Page[Row[Any]] = paging.fetch(conn, query, _VERSIONS, limit, cursor, lambda row: row)
    return paging.Page(_make(conn, name, rows.data), rows.next_cursor)


def artifact(conn: Connection, name: str, number: int) -> Iterator[bytes]:
    """Yield the model file in chunks, within the caller's transaction."""
    return blobs.read(conn, blob_id(conn, name, number))


def blob_id(conn: Connection, name: str, number: int) -> str:
    """Return the blob id of the model file, for `blobs.stream`."""
    found = conn.execute(sa.select(_version.c.blob_id).where(_is(name, number))).scalar_one_or_none()
    if found is None:
        raise _missing_version(conn, name, number)
    return str(found)


def delete_version(conn: Connection, name: str, number: int) -> None:
    """Delete a version and its file; raise Conflict if an alias or an active job uses it."""
    lock(conn, name)
    blob = blob_id(conn, name, number)
    alias = tables.alias.c
    query = sa.select(alias.alias).where(alias.model == name, alias.version == number)
    holders = conn.scalars(query.order_by(alias.alias)).all()
    if holders:
        names = ", ".join(holders)
        raise Conflict(
            f"Version {number} of {name} is served as {names}. Move these aliases first.",
            code="version_in_use",
        )
    user = _user(conn, name, number)
    if user is not None:
        message = f"Version {number} of {name} is in use by {user}. Wait until it ends or cancel it."
        raise Conflict(message, code="version_in_use")
    conn.execute(_version.delete().where(_is(name, number)))
    blobs.delete(conn, blob)
    generations.bump(conn)


def delete(conn: Connection, name: str, *, force: bool = False) -> None:
    """Delete a model with its versions, aliases and policy.

    Raises Conflict if an active job uses or trains it, and without `force` also if it has aliases.
    """
    lock(conn, name)
    model, policy, aliases, moves = tables.model, tables.model_policy, tables.alias.c, tables.alias_move.c
    names = list(conn.scalars(sa.select(aliases.alias).where(aliases.model == name).order_by(aliases.alias)))
    if names and not force:
        raise Conflict(
            f"Model {name} is served as {', '.join(names)}. Repeat with force to delete it anyway.",
            code="model_in_use",
        )
    user = _user_of_model(conn, name)
    if user is not None:
        message = f"Model {name} is in use by {user}. Wait until it ends or cancel it."
        raise Conflict(message, code="model_in_use")
    # The numbers of the moves started after those of an earlier model of this name.
    last_move = sa.select(sa.func.coalesce(sa.func.max(moves.seq), model.c.last_move)).where(
        moves.model == name
    )
    gone = {"deleted_at": clock.now(conn), "last_move": last_move.scalar_subquery()}
    conn.execute(model.update().where(model.c.name == name).values(**gone))
    conn.execute(tables.alias.delete().where(aliases.model == name))
    empty = {"promotion": None, "corpus": None, "retention": None}
    conn.execute(policy.update().where(policy.c.model == name).values(**empty))
    files = list(
        conn.scalars(_version.delete().where(_version.c.model == name).returning(_version.c.blob_id))
    )
    for blob in files:
        blobs.delete(conn, blob)
    generations.bump(conn)


def lock(conn: Connection, name: str) -> None:
    """Lock the versions and aliases of a model against other changes until the transaction ends."""
    query = sa.select(tables.model.c.name).where(_exists(name)).with_for_update()
    if conn.execute(query).one_or_none() is None:
        raise missing(conn, name)


def hold(conn: Connection, name: str, number: int) -> None:
    """Protect a version from deletion until the transaction ends, or raise NotFound."""
    # Conflicts with `lock`, but not with publishing.
    query = sa.select(tables.model.c.name).where(_exists(name))
    conn.execute(query.with_for_update(read=True, key_share=True))
    blob_id(conn, name, number)


def missing(conn: Connection, name: str, faults: Sequence[Fault] = ()) -> NotFound:
    """Make the error for a model that does not exist. It names a job that trains it, or a model with a similar name."""
    job = _user_of_model(conn, name)
    if job is not None:
        message = f"There is no model {name} yet. Job {job} is training it."
    else:
        query = sa.select(tables.model.c.name).where(tables.model.c.deleted_at.is_(None))
        message = suggest.missing("model", name, conn.scalars(query.limit(SUGGESTED_FROM)))
    return NotFound(message, faults, code="model_not_found")


def _user(conn: Connection, name: str, number: int) -> str | None:
    """Return an active job that uses this version."""
    job, uses = tables.job, tables.job_version
    query = (
        sa.select(job.c.id)
        .join(uses, uses.c.job_id == job.c.id)
        .where(uses.c.model == name, uses.c.version == number, job.c.state.not_in(TERMINAL))
    )
    return conn.execute(query.limit(1)).scalar_one_or_none()


def _user_of_model(conn: Connection, name: str) -> str | None:
    """Return an active job that trains this model or uses one of its versions."""
    job, uses = tables.job, tables.job_version
    query = (
        sa.select(job.c.id)
        .outerjoin(uses, uses.c.job_id == job.c.id)
        .where(sa.or_(uses.c.model == name, job.c.model == name), job.c.state.not_in(TERMINAL))
    )
    return conn.execute(query.limit(1)).scalar_one_or_none()


def _next_number(conn: Connection, name: str, now: datetime) -> int:
    model = tables.model
    insert_if_new(conn, model, {"name": name, "last_version": 0, "created_at": now})
    created_at = sa.case((model.c.deleted_at.is_(None), model.c.created_at), else_=now)
    values = {"last_version": model.c.last_version + 1, "created_at": created_at, "deleted_at": None}
    query = model.update().where(model.c.name == name).values(**values)
    return int(conn.execute(query.returning(model.c.last_version)).scalar_one())


def _exists(name: str) -> sa.ColumnElement[bool]:
    return sa.and_(tables.model.c.name == name, tables.model.c.deleted_at.is_(None))


def _is(name: str, number: int) -> sa.ColumnElement[bool]:
    if not 1 <= number <= MAX_VERSION:
        return sa.false()
    return sa.and_(_version.c.model == name, _version.c.version == number)


def _missing_version(conn: Connection, name: str, number: int) -> NotFound:
    get(conn, name)
    return NotFound(f"Model {name} has no version {number}.", code="version_not_found")


def _models_query() -> sa.Select[Any]:
    model = tables.model
    return (
        sa.select(
            model.c.name,
            model.c.created_at,
            sa.func.max(_version.c.version).label("latest"),
            sa.func.count(_version.c.version).label("versions"),
        )
        .outerjoin(_version, _version.c.model == model.c.name)
        .where(model.c.deleted_at.is_(None))
        .group_by(model.c.name, model.c.created_at)
    )


def _make_models(conn: Connection, rows: list[Row[Any]]) -> list[ModelRow]:
    alias = tables.alias
    aliases: dict[str, dict[str, int]] = {row.name: {} for row in rows}
    query = sa.select(alias.c.model, alias.c.alias, alias.c.version).where(alias.c.model.in_(list(aliases)))
    for found in conn.execute(query.order_by(alias.c.alias)):
        aliases[found.model][found.alias] = found.version
    return [ModelRow(**row._asdict(), aliases=aliases[row.name]) for row in rows]


def _make(conn: Connection, name: str, rows: Sequence[Row[Any]]) -> list[VersionRow]:
    scored = evaluations.of_versions(conn, name, [row.version for row in rows])
    return [VersionRow(**row._asdict(), evaluations=scored[row.version]) for row in rows]
