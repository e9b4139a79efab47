"""Which scope each route needs: the one table that says so.

A route belongs to the first part of its path. One that is not in the table is for `admin` alone, and a test says
that it is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from core import specs
from core.store.keys import Scope

#: Methods that change nothing.
READING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Needs:
    """What a resource asks for; None lets everybody in."""

    reading: Scope | None
    changing: Scope | None


NEEDS: Mapping[str, Needs] = {
    "tag": Needs(Scope.TAG, Scope.TAG),
    "corpora": Needs(Scope.READ, Scope.TRAIN),
    "lexicons": Needs(Scope.READ, Scope.TRAIN),
    "jobs": Needs(Scope.READ, Scope.TRAIN),
    "models": Needs(Scope.READ, Scope.PROMOTE),
    # A preview is posted, and keeps nothing.
    "features": Needs(Scope.READ, Scope.READ),
    "keys": Needs(Scope.ADMIN, Scope.ADMIN),
    "audit": Needs(Scope.ADMIN, Scope.ADMIN),
    "metrics": Needs(Scope.READ, Scope.READ),
    # Probes, the version, the documentation and the page tell nothing that is stored here.
    "livez": Needs(None, None),
    "readyz": Needs(None, None),
    "version": Needs(None, None),
    "docs": Needs(None, None),
    "openapi.json": Needs(None, None),
    "": Needs(None, None),
    "page": Needs(None, None),
}

_UNKNOWN = Needs(Scope.ADMIN, Scope.ADMIN)


def resource_of(path: str) -> str:
    """Give the first part of a path."""
    return path[1:].partition("/")[0]


def needed(method: str, path: str) -> Scope | None:
    """Give the scope that a request needs, None when it needs no key."""
    needs = NEEDS.get(resource_of(path), _UNKNOWN)
    return needs.reading if method in READING else needs.changing


def also_needed(spec: specs.JobSpec) -> Scope | None:
    """Give the scope that a job needs beside that of the route: one that promotes changes what is served."""
    return None if specs.promoting(spec) is None else Scope.PROMOTE
