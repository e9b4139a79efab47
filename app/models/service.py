"""What can be done with models, versions and aliases."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from fastapi.concurrency import run_in_threadpool
from redis import Redis
from sqlalchemy.engine import Connection

from app.deps import Caller
from app.models import templates
from app.models.conditions import Expected
from app.models.templates import Templates
from app.tagging.serving import Serving
from core import wire
from core.errors import Invalid, NotFound
from core.model import inspection
from core.model.inspection import FeatureWeight, TransitionWeight
from core.model.model import Model as LearnedModel
from core.store import aliases, blobs, models
from core.store.aliases import AliasRow, Back, MoveRow, Why
from core.store.engine import Database
from core.store.models import ModelRow, VersionRow
from core.store.paging import Page
from core.store.references import Target


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an alias: of which, by whom, why, and in which states of it."""

    model: str
    alias: str
    caller: Caller
    reason: str | None
    expected: Expected


def page(database: Database, limit: int, cursor: str | None) -> Page[ModelRow]:
    """List models, newest first."""
    with database.read() as conn:
        return models.page(conn, limit, cursor)


def get(database: Database, name: str) -> ModelRow:
    """Give one model."""
    with database.read() as conn:
        return models.get(conn, name)


def versions(database: Database, name: str, limit: int, cursor: str | None) -> Page[VersionRow]:
    """List the versions of a model, newest first."""
    with database.read() as conn:
        return models.versions(conn, name, limit, cursor)


def version(database: Database, name: str, number: int) -> VersionRow:
    """Give one version."""
    with database.read() as conn:
        return models.version(conn, name, number)


def artifact(database: Database, name: str, number: int) -> Iterator[bytes]:
    """Give the model file, with no transaction open while a slow client reads."""
    with database.read() as conn:
        blob_id = models.blob_id(conn, name, number)
    return blobs.stream(database, blob_id)


async def version_templates(database: Database, serving: Serving, name: str, number: int) -> Templates:
    """Say what each template has in a version, and which were dropped."""
    row = await run_in_threadpool(version, database, name, number)
    tagger = await serving.tagger_of(Target(name, number, row.sha256))
    return await run_in_threadpool(templates.of_version, tagger.model, row.metrics)


async def opened(database: Database, serving: Serving, name: str, number: int) -> LearnedModel:
    """Open a version for a look at it."""
    row = await run_in_threadpool(version, database, name, number)
    return (await serving.tagger_of(Target(name, number, row.sha256))).model


def features(
    model: LearnedModel, label: str | None, template: str | None, limit: int, cursor: str | None
) -> Page[FeatureWeight]:
    """List weights of features, the strongest first."""
    data, rest = inspection.top_features(model, label, template, limit, _place(cursor))
    return Page(data, None if rest is None else str(rest))


def transitions(
    model: LearnedModel, before: str | None, label: str | None, limit: int, cursor: str | None
) -> Page[TransitionWeight]:
    """List weights of label pairs, the strongest first."""
    data, rest = inspection.top_transitions(model, before, label, limit, _place(cursor))
    return Page(data, None if rest is None else str(rest))


def _place(cursor: str | None) -> int | None:
    """The place in a model that a cursor of its weights stands for. It never changes, as the model does not."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise Invalid("The cursor is not one of this list.", code="invalid_cursor")
    return int(cursor)


def delete_version(database: Database, redis: Redis | None, name: str, number: int, caller: Caller) -> None:
    """Remove a version that no alias stands for."""
    with database.write() as conn:
        models.delete_version(conn, name, number)
        caller.record(conn)
    announce(redis)


def list_aliases(database: Database, name: str) -> Page[AliasRow]:
    """List the aliases of a model."""
    with database.read() as conn:
        return Page(aliases.list_all(conn, name), None)


def alias(database: Database, name: str, alias_name: str, when: datetime | None = None) -> AliasRow:
    """Give one alias as it stands, or as it stood."""
    with database.read() as conn:
        if when is not None:
            return aliases.at(conn, name, alias_name, when)
        return aliases.get(conn, name, alias_name)


def history(database: Database, name: str, alias_name: str, limit: int, cursor: str | None) -> Page[MoveRow]:
    """List the moves of an alias, newest first."""
    with database.read() as conn:
        return aliases.history(conn, name, alias_name, limit, cursor)


def move(
    database: Database, redis: Redis | None, change: Change, number: int, *, force: bool = False
) -> AliasRow:
    """Point an alias at a version."""
    with database.write() as conn:
        before = _present_seq(conn, change)
        seq = change.expected.chosen(before)
        moved = aliases.move(conn, change.model, change.alias, number, _why(change), seq, force=force)
        change.caller.record(conn, note=_forced(conn, change) if moved.seq > before else None)
    announce(redis)
    return moved


def rollback(database: Database, redis: Redis | None, change: Change, back: Back) -> AliasRow:
    """Return an alias to what it stood for before."""
    with database.write() as conn:
        seq = change.expected.chosen(_present_seq(conn, change))
        moved = aliases.rollback(conn, change.model, change.alias, _why(change), seq, back)
        change.caller.record(conn)
    announce(redis)
    return moved


def _why(change: Change) -> Why:
    return Why(change.caller.actor, change.reason, change.caller.request_id)


def _present_seq(conn: Connection, change: Change) -> int:
    """The number of the last move of an alias, which nobody moves from now on; 0 when it does not exist."""
    models.lock(conn, change.model)
    try:
        return aliases.get(conn, change.model, change.alias).seq
    except NotFound:
        return 0


def _forced(conn: Connection, change: Change) -> str | None:
    """What the audit has to say of a move just made, if that was forced."""
    (made,) = aliases.history(conn, change.model, change.alias, 1).data
    return None if made.forced is None else f"forced ({made.reason}) although {made.forced}"


def announce(redis: Redis | None) -> None:
    """Tell the other processes that what is served has changed."""
    if redis is not None:
        wire.bump_registry(redis)
