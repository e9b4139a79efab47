"""Changes of the served versions, each with its announcement.

Every API process polls the generation of the registry. An announcement over Redis makes it look at once, so a change
takes effect within milliseconds. The announcement is sent after the commit; without Redis the poll finds the change.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from redis import Redis
from sqlalchemy.engine import Connection

from tagsmith.core.registry import aliases, models
from tagsmith.core.registry.aliases import AliasRow, MoveContext, RollbackTarget
from tagsmith.core.registry.models import NewVersion, VersionRow
from tagsmith.core.service import messages
from tagsmith.core.store.engine import after_commit


@dataclass(frozen=True, slots=True)
class AliasState(AliasRow):
    """Where an alias points, and where a rollback would take it."""

    #: The version that a rollback of one step returns to; None: there is no earlier one.
    rollback_to: int | None


class Registry:
    """Changes versions and aliases in the caller's transaction, and announces the change once it is committed."""

    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis

    def publish(self, conn: Connection, model: str, new: NewVersion, chunks: Iterable[bytes]) -> VersionRow:
        """Store a model file as the next version of a model."""
        made = models.publish(conn, model, new, chunks)
        after_commit(conn, self.announce)
        return made

    def delete_version(self, conn: Connection, model: str, number: int) -> None:
        """Remove a version that no alias points to."""
        models.delete_version(conn, model, number)
        after_commit(conn, self.announce)

    def delete_model(self, conn: Connection, model: str, *, force: bool) -> None:
        """Remove a model with all its versions."""
        models.delete(conn, model, force=force)
        after_commit(conn, self.announce)

    def move_alias(
        self,
        conn: Connection,
        model: str,
        alias: str,
        version: int,
        context: MoveContext,
        if_match: int | None = None,
        *,
        force: bool = False,
    ) -> AliasState:
        """Point an alias at a version; see `aliases.move`."""
        moved = aliases.move(conn, model, alias, version, context, if_match, force=force)
        after_commit(conn, self.announce)
        return state_of(conn, moved)

    def roll_back(
        self,
        conn: Connection,
        model: str,
        alias: str,
        context: MoveContext,
        if_match: int | None,
        target: RollbackTarget,
    ) -> AliasState:
        """Return an alias to where it pointed before; see `aliases.rollback`."""
        moved = aliases.rollback(conn, model, alias, context, if_match, target)
        after_commit(conn, self.announce)
        return state_of(conn, moved)

    def announce(self) -> None:
        """Notify the API processes of a change."""
        if self._redis is not None:
            messages.bump_registry(self._redis)


def alias_state(conn: Connection, model: str, alias: str, at: datetime | None = None) -> AliasState:
    """Return one alias as it is now, or as it was at a time."""
    row = aliases.get(conn, model, alias) if at is None else aliases.at(conn, model, alias, at)
    return state_of(conn, row)


def alias_states(conn: Connection, model: str) -> list[AliasState]:
    """List the aliases of a model by name."""
    return [state_of(conn, row) for row in aliases.list_all(conn, model)]


def state_of(conn: Connection, row: AliasRow) -> AliasState:
    """Add the version that a rollback returns to."""
    earlier = next(aliases.rollback_targets(conn, row), None)
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(AliasRow)}
    return AliasState(**values, rollback_to=None if earlier is None else earlier.version)
