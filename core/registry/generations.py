"""The generation number of the registry, which rises with every change, and snapshots for serving."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tagsmith.core.store import tables

ROW = 1


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """The versions and aliases of a model."""

    #: The newest version; None if all were deleted.
    latest: int | None
    #: Version of each alias.
    aliases: Mapping[str, int]
    #: sha256 of the file of each version.
    versions: Mapping[int, str]


def generation(conn: Connection) -> int:
    """Return the present generation. It is cheap, and meant to be polled every second."""
    registry = tables.registry
    return int(conn.execute(sa.select(registry.c.generation).where(registry.c.id == ROW)).scalar_one())


def bump(conn: Connection) -> None:
    """Mark this transaction as a change of the registry. Call it late, because all changes wait for this row."""
    registry = tables.registry
    conn.execute(registry.update().where(registry.c.id == ROW).values(generation=registry.c.generation + 1))


def rewrite(conn: Connection) -> None:
    """Write the generation as it is, to see whether the database can store anything."""
    registry = tables.registry
    conn.execute(registry.update().where(registry.c.id == ROW).values(generation=registry.c.generation))


def snapshot(conn: Connection, name: str | None = None) -> dict[str, ModelEntry]:
    """Return all models, or the model `name`, with versions and aliases, as of the caller's transaction."""
    model, version, alias = tables.model, tables.model_version, tables.alias

    def of(column: sa.Column[str]) -> sa.ColumnElement[bool]:
        return sa.true() if name is None else column == name

    names = conn.scalars(sa.select(model.c.name).where(of(model.c.name), model.c.deleted_at.is_(None)))
    versions: dict[str, dict[int, str]] = {each: {} for each in names}
    aliases: dict[str, dict[str, int]] = {each: {} for each in versions}
    query = sa.select(version.c.model, version.c.version, version.c.sha256)
    for row in conn.execute(query.where(of(version.c.model))):
        versions[row.model][row.version] = row.sha256
    for row in conn.execute(
        sa.select(alias.c.model, alias.c.alias, alias.c.version).where(of(alias.c.model))
    ):
        aliases[row.model][row.alias] = row.version
    return {
        name: ModelEntry(
            latest=max(numbers, default=None),
            aliases=MappingProxyType(aliases[name]),
            versions=MappingProxyType(numbers),
        )
        for name, numbers in versions.items()
    }
