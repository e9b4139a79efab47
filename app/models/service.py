"""Operations on models, versions and aliases."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.engine import Connection

from tagsmith import wire
from tagsmith.app.deps import Caller
from tagsmith.app.http import etags
from tagsmith.app.http.etags import Expected
from tagsmith.app.http.idempotency import ChangeResponse
from tagsmith.app.models import templates
from tagsmith.app.models.templates import TemplateReport
from tagsmith.app.tagging.serving import Serving
from tagsmith.core.base.errors import Invalid, NotFound
from tagsmith.core.model import inspection
from tagsmith.core.model.inspection import FeatureWeight, TransitionWeight
from tagsmith.core.model.model import SparseModel as LearnedModel
from tagsmith.core.registry import aliases, models
from tagsmith.core.registry.aliases import MoveContext, MoveRow, RollbackTarget
from tagsmith.core.registry.models import ModelRow, VersionRow
from tagsmith.core.registry.references import Target
from tagsmith.core.registry.registry import AliasState, Registry, alias_state, alias_states
from tagsmith.core.store import blobs
from tagsmith.core.store.engine import Database
from tagsmith.core.store.paging import Page


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an alias: which alias, who changes it, why, and in which states it is allowed."""

    model: str
    alias: str
    caller: Caller
    reason: str | None
    expected: Expected


def list_page(database: Database, limit: int, cursor: str | None) -> Page[ModelRow]:
    """List models, newest first."""
    with database.read() as conn:
        return models.page(conn, limit, cursor)


def get(database: Database, name: str) -> ModelRow:
    """Return one model."""
    with database.read() as conn:
        return models.get(conn, name)


def versions(database: Database, name: str, limit: int, cursor: str | None) -> Page[VersionRow]:
    """List the versions of a model, newest first."""
    with database.read() as conn:
        return models.versions(conn, name, limit, cursor)


def version(database: Database, name: str, number: int) -> VersionRow:
    """Return one version."""
    with database.read() as conn:
        return models.version(conn, name, number)


def artifact(database: Database, name: str, number: int) -> Iterator[bytes]:
    """Return the model file; no transaction stays open while a slow client reads."""
    with database.read() as conn:
        blob_id = models.blob_id(conn, name, number)
    return blobs.stream(database, blob_id)


async def version_templates(database: Database, serving: Serving, name: str, number: int) -> TemplateReport:
    """Describe the templates of a version, including those that training dropped."""
    row = await run_in_threadpool(version, database, name, number)
    tagger = await serving.tagger_of(Target(name, number, row.sha256))
    return await run_in_threadpool(templates.of_version, tagger.model, row.metrics)


async def opened(database: Database, serving: Serving, name: str, number: int) -> LearnedModel:
    """Open a version for inspection."""
    row = await run_in_threadpool(version, database, name, number)
    return (await serving.tagger_of(Target(name, number, row.sha256))).model


def features(
    model: LearnedModel, label: str | None, template: str | None, limit: int, cursor: str | None
) -> Page[FeatureWeight]:
    """List feature weights, largest magnitude first."""
    data, rest = inspection.top_features(model, label, template, limit, _place(cursor))
    return Page(data, None if rest is None else str(rest))


def transitions(
    model: LearnedModel, before: str | None, label: str | None, limit: int, cursor: str | None
) -> Page[TransitionWeight]:
    """List transition weights, largest magnitude first."""
    data, rest = inspection.top_transitions(model, before, label, limit, _place(cursor))
    return Page(data, None if rest is None else str(rest))


def _place(cursor: str | None) -> int | None:
    """Parse a cursor: a position in the weights, which never change."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise Invalid(
            "The cursor is not from this list. Start again without a cursor.", code="invalid_cursor"
        )
    return int(cursor)


def delete_version(database: Database, registry: Registry, name: str, number: int, caller: Caller) -> None:
    """Delete a version that no alias points to."""
    with database.write() as conn:
        registry.delete_version(conn, name, number)
        caller.record(conn)


def delete(database: Database, registry: Registry, name: str, caller: Caller, *, force: bool) -> None:
    """Delete a model with all its versions."""
    with database.write() as conn:
        registry.delete_model(conn, name, force=force)
        caller.record(conn, note="forced" if force else None)


def list_aliases(database: Database, name: str) -> Page[AliasState]:
    """List the aliases of a model."""
    with database.read() as conn:
        return Page(alias_states(conn, name), None)


def alias(database: Database, name: str, alias_name: str, at: datetime | None = None) -> AliasState:
    """Return one alias as it is now, or as it was at the time `at`."""
    with database.read() as conn:
        return alias_state(conn, name, alias_name, at)


def history(database: Database, name: str, alias_name: str, limit: int, cursor: str | None) -> Page[MoveRow]:
    """List the moves of an alias, newest first."""
    with database.read() as conn:
        return aliases.history(conn, name, alias_name, limit, cursor)


def move(
    database: Database, registry: Registry, change: Change, number: int, *, force: bool = False
) -> AliasState:
    """Point an alias at a version."""
    with database.write() as conn:
        before = _present_seq(conn, change)
        seq = change.expected.expected_state(before)
        moved = registry.move_alias(
            conn, change.model, change.alias, number, _context(change), seq, force=force
        )
        change.caller.record(conn, note=_forced(conn, change) if moved.seq > before else None)
    return moved


def roll_back(
    database: Database, registry: Registry, change: Change, target: RollbackTarget
) -> ChangeResponse[wire.Alias]:
    """Point an alias back to an earlier version."""
    with database.write() as conn:
        seq = change.expected.expected_state(_present_seq(conn, change))
        moved = registry.roll_back(conn, change.model, change.alias, _context(change), seq, target)
        headers = {"etag": etags.etag(moved.seq)}
        response = ChangeResponse(wire.Alias.model_validate(moved), 200, headers=headers)
        return change.caller.respond(conn, response)


def _context(change: Change) -> MoveContext:
    return MoveContext(change.caller.actor, change.reason, change.caller.request_id)


def _present_seq(conn: Connection, change: Change) -> int:
    """Lock an alias and return the number of its last move; 0 when it does not exist."""
    models.lock(conn, change.model)
    try:
        return aliases.get(conn, change.model, change.alias).seq
    except NotFound:
        return 0


def _forced(conn: Connection, change: Change) -> str | None:
    """Return the audit note of the newest move if it was forced, else None."""
    (made,) = aliases.history(conn, change.model, change.alias, 1).data
    return None if made.forced is None else f"forced ({made.reason}) although {made.forced}"
