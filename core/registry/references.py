"""Model references (`name`, `name@alias` or `name:3`), and the versions they resolve to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from tagsmith.core.base import suggest
from tagsmith.core.base.errors import Fault, Invalid, NotFound
from tagsmith.core.base.names import NAME_PATTERN, wrong_reference
from tagsmith.core.registry import generations, models
from tagsmith.core.registry.generations import ModelEntry

#: A bare model name resolves to this alias if it exists, else to the newest version.
DEFAULT_ALIAS = "champion"

_NAME = NAME_PATTERN.removeprefix("^").removesuffix("$")
_REFERENCE = re.compile(rf"(?P<name>{_NAME})(?:@(?P<alias>{_NAME})|:(?P<version>[1-9][0-9]{{0,9}}))?")


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference."""

    name: str
    alias: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The version that a reference resolves to."""

    model: str
    version: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.model}:{self.version}"


def parse(text: str, pointer: str) -> Reference:
    """Parse a reference, or raise Invalid. `pointer` is its location in the body."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        fault = Fault(wrong_reference(text), pointer=pointer)
        raise Invalid("The model reference is not valid.", [fault], code="invalid_reference")
    version = match["version"]
    return Reference(match["name"], match["alias"], int(version) if version else None)


def find(known: Mapping[str, ModelEntry], reference: Reference) -> Target | None:
    """Resolve a reference in a snapshot of the registry; None if it does not exist."""
    entry = known.get(reference.name)
    if entry is None:
        return None
    if reference.version is not None:
        number: int | None = reference.version
    elif reference.alias is not None:
        number = entry.aliases.get(reference.alias)
    else:
        number = entry.aliases.get(DEFAULT_ALIAS, entry.latest)
    if number is None or number not in entry.versions:
        return None
    return Target(reference.name, number, entry.versions[number])


def resolve(conn: Connection, text: str, pointer: str) -> Target:
    """Resolve a reference now, or raise NotFound."""
    reference = parse(text, pointer)
    known = generations.snapshot(conn, reference.name)
    target = find(known, reference)
    if target is None:
        raise unknown(conn, known, reference, pointer)
    return target


def unknown(
    conn: Connection, known: Mapping[str, ModelEntry], reference: Reference, pointer: str
) -> NotFound:
    """Make the error for a reference that does not resolve in the snapshot `known`."""
    name = reference.name
    if name not in known:
        return models.missing(conn, name, [Fault("unknown model", pointer=pointer)])
    if reference.alias is not None:
        message = suggest.missing(f"alias of model {name} named", reference.alias, known[name].aliases)
        return NotFound(message, [Fault("unknown alias", pointer=pointer)], code="alias_not_found")
    version = "versions" if reference.version is None else f"version {reference.version}"
    fault = Fault("unknown version", pointer=pointer)
    return NotFound(f"Model {name} has no {version}.", [fault], code="version_not_found")
