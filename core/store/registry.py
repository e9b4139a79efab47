"""What serving follows: one number that rises with every change, and the state it stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.store import tables

ROW = 1


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """What a model reference can resolve to."""

    #: The newest version that exists, None when all were deleted.
    latest: int | None
    #: Alias -> version.
    aliases: Mapping[str, int]
    #: Version -> sha256 of its file.
    versions: Mapping[int, str]


def generation(conn: Connection) -> int:
    """Give the number of the present state. Cheap: meant to be polled every second."""
    registry = tables.registry
    return int(conn.execute(sa.select(registry.c.generation).where(registry.c.id == ROW)).scalar_one())


def bump(conn: Connection) -> None:
    """Say that this transaction changes what is served. Late in it, since all changes queue here."""
    registry = tables.registry
    conn.execute(registry.update().where(registry.c.id == ROW).values(generation=registry.c.generation + 1))


def snapshot(conn: Connection, name: str | None = None) -> dict[str, ModelEntry]:
    """Give every model, or the one of that name, with its versions and aliases, as of the caller's transaction."""
    model, version, alias = tables.model, tables.model_version, tables.alias

    def of(column: sa.Column[str]) -> sa.ColumnElement[bool]:
        return sa.true() if name is None else column == name

    names = conn.scalars(sa.select(model.c.name).where(of(model.c.name)))
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
